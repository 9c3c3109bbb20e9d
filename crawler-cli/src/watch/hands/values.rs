//! What programs read over HTTP: the values that `--json` prints, and pages of lists.

use std::ops::ControlFlow;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::why::Around;
use super::{Live, Reader, export, holds, letters, schedules, show, status};
use crate::check::host::HeadUse;
use crate::store::{
    Cursor, DeadLetterFilter, DeadLetterId, HostDetail, HostHold, HostId, HostList, JobStore,
    NoticeId, Page, Pause, PauseStore, ScheduleState, Store, StoreError, UrlKey, UrlList,
    WatchStore,
};
use crate::watch::control::{HostLimits, HostLive};

/// Hosts, with what holds for each of them.
#[derive(Debug)]
pub(in crate::watch) struct Hosts {
    /// The hosts.
    pub(in crate::watch) page: Page<HostDetail, HostList>,
    pauses: Vec<Pause>,
    holds: Vec<HostHold>,
}

impl Hosts {
    /// Each host. `live` is what the service says of itself, `hosts` what it says of these.
    pub(in crate::watch) fn values(
        &self,
        live: &Live,
        hosts: &[HostLive],
        now: Timestamp,
    ) -> Vec<Value> {
        let rows = self.page.rows.iter();
        rows.map(|detail| {
            let root = &detail.host.root;
            let told = hosts.iter().find(|host| host.waits.root == *root);
            self.value(detail, live.clone().with_host(told), told, now)
        })
        .collect()
    }

    fn value(
        &self,
        detail: &HostDetail,
        live: Live,
        told: Option<&HostLive>,
        now: Timestamp,
    ) -> Value {
        let hold = self.holds.iter().find(|hold| hold.host == detail.host.id);
        let around = Around {
            now,
            pauses: self.pauses.clone(),
            hold: hold.cloned(),
            live,
            fleet: None,
        };
        let facts = &detail.host.facts;
        let mut value = status::host_json(detail, &around);
        value["limits"] = told.map_or(Value::Null, |told| limits(&told.limits));
        value["learned"] = json!({
            "no_head_until": facts.no_head_until,
            "head_lies_until": facts.head_lies_until,
            "control": facts.control.map(|control| json!({ "at": control.at, "status": control.status })),
        });
        value
    }
}

fn limits(limits: &HostLimits) -> Value {
    let rate = |rate: courser::Rate| rate.count.get() as f64 / rate.per.as_secs_f64();
    json!({
        "connections": limits.connections,
        "requests_per_second": limits.rate.filter(|rate| !rate.per.is_zero()).map(rate),
        "delay_ms": millis(limits.delay),
        "robots_delay_ms": limits.robots_delay.map(millis),
        "timeout_ms": millis(limits.timeout),
        "head": match limits.head {
            HeadUse::Auto => "auto",
            HeadUse::Never => "never",
        },
    })
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The values of a page, which have the same keys.
fn each<T, K>(page: Page<T, K>, value: impl FnMut(T) -> Value) -> Page<Value, K> {
    Page {
        rows: page.rows.into_iter().map(value).collect(),
        next: page.next,
    }
}

/// The first `limit` of rows of which one more was read, if there is one more.
fn page<T, K>(mut rows: Vec<T>, limit: usize, key: impl Fn(&T) -> K) -> Page<T, K> {
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(key);
    Page { rows, next }
}

impl Reader {
    /// What [`status`](Self::status) tells.
    pub(in crate::watch) fn status_value(
        &mut self,
        live: Live,
        now: Timestamp,
    ) -> Result<Value, StoreError> {
        let around = self.around(None, live, now)?;
        Ok(status::json(
            &self.overview(&around.live, now, status::MOST_COUNTED)?,
            &around,
        ))
    }

    /// What [`show`](Self::show) tells. `live` should say how the host of the URL waits.
    pub(in crate::watch) fn url_value(
        &mut self,
        url: &str,
        live: Live,
        now: Timestamp,
    ) -> Result<Option<Value>, StoreError> {
        let Some(detail) = self.store.show(url)? else {
            return Ok(None);
        };
        let around = self.around(Some(&detail.host.root), live, now)?;
        let letters = self.store.letters_of(detail.url.id)?;
        let fields = export::fields(detail.url.clone());
        Ok(Some(show::json(fields, &detail, &letters, &around)))
    }

    /// Lines of [`export`](Self::export).
    pub(in crate::watch) fn url_values(
        &mut self,
        list: &UrlList,
        limit: usize,
    ) -> Result<Page<Value, UrlKey>, StoreError> {
        let page = WatchStore::urls(&mut self.store, list, limit)?;
        Ok(each(page, |url| Value::Object(export::fields(url))))
    }

    /// Some hosts.
    pub(in crate::watch) fn some_hosts(
        &mut self,
        list: &HostList,
        limit: usize,
    ) -> Result<Hosts, StoreError> {
        let page = WatchStore::hosts(&mut self.store, list, limit)?;
        self.with_guards(page)
    }

    /// The host with this root alone; no host if the store does not know it.
    pub(in crate::watch) fn one_host(&mut self, root: &str) -> Result<Hosts, StoreError> {
        let rows = self.host(root)?.into_iter().collect();
        self.with_guards(Page { rows, next: None })
    }

    fn with_guards(&mut self, page: Page<HostDetail, HostList>) -> Result<Hosts, StoreError> {
        Ok(Hosts {
            page,
            pauses: self.store.pauses()?,
            holds: self.store.holds()?,
        })
    }

    /// Holds, as [`holds`](Self::holds) tells them.
    pub(in crate::watch) fn hold_values(
        &mut self,
        after: Option<HostId>,
        limit: usize,
    ) -> Result<Page<Value, HostId>, StoreError> {
        let holds = self.store.holds_after(after, limit + 1)?;
        let page = page(holds, limit, |hold| hold.host);
        Ok(each(page, |hold| holds::json(&hold)))
    }

    /// Dead letters, as [`letters`](Self::letters) tells them, but latest first.
    pub(in crate::watch) fn letter_values(
        &mut self,
        filter: &DeadLetterFilter,
        before: DeadLetterId,
        limit: usize,
    ) -> Result<Page<Value, DeadLetterId>, StoreError> {
        let page = self.store.letters_before(filter, before, limit)?;
        Ok(each(page, |letter| letters::json(&letter)))
    }

    /// What [`letter`](Self::letter) tells.
    pub(in crate::watch) fn letter_value(
        &mut self,
        number: i64,
    ) -> Result<Option<Value>, StoreError> {
        let letter = self.store.dead_letter(DeadLetterId(number))?;
        Ok(letter.as_ref().map(letters::json))
    }

    /// What [`schedules`](Self::schedules) tells of the schedules of these names.
    pub(in crate::watch) fn schedule_values(
        &mut self,
        names: &[String],
    ) -> Result<Vec<Value>, StoreError> {
        let states: Result<Vec<ScheduleState>, StoreError> =
            names.iter().map(|name| self.store.schedule(name)).collect();
        Ok(states?.iter().map(schedules::json).collect())
    }

    /// Changes of state, as [`export_changes`](Self::export_changes) tells them.
    pub(in crate::watch) fn change_values(
        &mut self,
        mut after: Cursor,
        limit: usize,
    ) -> Result<(Vec<Value>, Cursor), StoreError> {
        let mut changes = Vec::new();
        self.store.events(after, &mut |event| {
            after = event.cursor;
            changes.push(export::change(&event));
            match changes.len() < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        Ok((changes, after))
    }

    /// Notices, oldest first, and the number of the last one.
    pub(in crate::watch) fn notice_values(
        &mut self,
        after: NoticeId,
        limit: usize,
    ) -> Result<(Vec<Value>, NoticeId), StoreError> {
        let notices = self.store.notices(after, limit)?;
        let last = notices.last().map_or(after, |(id, _)| *id);
        let values = notices.iter().map(|(id, notice)| {
            json!({
                "id": id.0,
                "at": notice.at,
                "kind": notice.kind,
                "who": notice.who,
                "text": notice.text,
            })
        });
        Ok((values.collect(), last))
    }
}
