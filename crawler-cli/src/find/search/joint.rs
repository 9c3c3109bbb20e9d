//! What a search does that several processes share: it claims hosts, gives some back to those who have nothing to do, and
//! handles links that others found.

use url::Url;

use super::{Host, Hosts, Plan, Search, Shared, check_scheme, host_of, restore_host};
use crate::crawl::hosts::HostId;
use crate::crawl::origin::root_of;
use crate::find::link::Link;
use crate::find::state::StateError;
use crate::find::summary::Ending;

/// Becomes a process of the search, with no hosts. The hosts of these URLs are there for all.
pub(super) fn enter(
    given: &[Url],
    plan: &Plan<'_>,
    shared: &mut Shared<'_>,
) -> Result<Hosts<Host>, StateError> {
    let roots: Vec<Url> = given.iter().map(root_of).collect();
    let origins: Vec<&str> = roots.iter().map(Url::as_str).collect();
    let events = &mut shared.run.events;
    events.with_state(|state| state.enter(&origins))?;
    Ok(Hosts::new(plan.transfer.identities.clone()))
}

impl Search<'_, '_> {
    /// Keeps up with the other processes, if it is time to.
    pub(super) fn tend(&mut self) -> Result<(), StateError> {
        if !self.shared.run.is_shared() {
            return Ok(());
        }
        self.release()?;
        let ending = self.shared.run.ending();
        let hosts = self.scheduler.hosts();
        let held: Vec<i64> = hosts.works().map(|host| host.number).collect();
        let active = hosts.works().filter(|host| host.is_open(ending)).count();
        let events = &mut self.shared.run.events;
        let Some(news) = events.with_state(|state| state.tend(&held, active))? else {
            return Ok(());
        };
        if news.quit && ending == Ending::Finished {
            events.summary.ending = Ending::Quit;
        }
        if let Some((process, results)) = news.inherited
            && events.with_state(|state| state.inherit(process, &results))?
        {
            events.inherit(&results);
        }
        for (number, origin) in news.claimed {
            self.claim(number, &origin)?;
        }
        for (number, host, text) in news.links {
            self.receive(number, host, &text)?;
        }
        self.spare(news.spare);
        Ok(())
    }

    /// Begins to search a host that is this process's now, or goes on where another one has stopped.
    fn claim(&mut self, number: i64, origin: &str) -> Result<(), StateError> {
        let Ok(root) = Url::parse(origin) else {
            return self.damaged(origin.to_owned());
        };
        let events = &mut self.shared.run.events;
        let saved = events.with_state(|state| state.load(number))?;
        let id = host_of(self.scheduler.hosts(), &root, self.plan, &mut self.shared);
        let (host, _) = self.scheduler.work_and_calls(id);
        host.number = number;
        self.given.give(host);
        if saved.crawl.is_none() {
            check_scheme(host, &mut self.shared);
        }
        let restored = restore_host(host, saved, self.shared.files.as_ref());
        restored.or_else(|text| self.damaged(text))
    }

    /// Handles a link from another process.
    fn receive(&mut self, number: i64, host: i64, text: &str) -> Result<(), StateError> {
        let Some(link) = Link::of_text(text) else {
            return self.damaged(text.to_owned());
        };
        // The host may have been claimed after the links were read; the link stays where it is.
        let is_here = |id: HostId, own: &mut Self| own.scheduler.hosts().work(id).number == host;
        let id = self.scheduler.hosts().at(&root_of(&link.url));
        if !id.is_some_and(|id| is_here(id, self)) {
            return Ok(());
        }
        self.add_link(&link);
        self.hand_over();
        if let Some(state) = self.shared.run.state() {
            state.stage_received(number);
        }
        Ok(())
    }

    fn damaged(&mut self, text: String) -> Result<(), StateError> {
        match self.shared.run.state() {
            Some(state) => Err(state.damaged(text)),
            None => Ok(()),
        }
    }

    /// Lets others have so many hosts with something left to do.
    fn spare(&mut self, count: usize) {
        let ending = self.shared.run.ending();
        let hosts = self.scheduler.hosts();
        let leaving = hosts.works().filter(|host| host.is_leaving).count();
        let open = hosts.works_mut();
        let open = open.filter(|(_, host)| host.is_open(ending) && !host.is_leaving);
        for (_, host) in open.take(count.saturating_sub(leaving)) {
            host.is_leaving = true;
        }
    }

    /// Gives back the hosts that others are to have, when nothing is in flight and everything is saved.
    fn release(&mut self) -> Result<(), StateError> {
        if !self
            .shared
            .run
            .state()
            .is_some_and(|state| state.is_settled())
        {
            return Ok(());
        }
        let hosts = self.scheduler.hosts();
        let mut ids: Vec<HostId> = hosts.ids().collect();
        ids.retain(|&id| hosts.work(id).is_leaving && !hosts.is_calling(id));
        if ids.is_empty() {
            return Ok(());
        }
        let numbers: Vec<i64> = ids.iter().map(|id| hosts.work(*id).number).collect();
        let events = &mut self.shared.run.events;
        events.with_state(|state| state.release(&numbers))?;
        for id in ids {
            self.scheduler.remove(id);
        }
        Ok(())
    }
}
