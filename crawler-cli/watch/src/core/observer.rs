//! Counts requests.

use std::sync::Arc;

use courser::Report;

use super::asking::{CANARY, CONTROL};
use crate::figures::{Figures, Method, Phase, Reason};
use check::host::{Observe, Purpose};
use check::task::UrlId as TaskId;

/// Counts requests.
#[derive(Debug)]
pub(super) struct Observer(pub(super) Arc<Figures>);

impl Observe for Observer {
    fn sent(&self, task: Option<TaskId>, method: &'static str, purpose: Purpose) {
        let method = match method {
            "HEAD" => Method::Head,
            _ => Method::Get,
        };
        let task = task.map_or(0, |task| task.0);
        let reason = match purpose {
            _ if task & CONTROL != 0 => Reason::Control,
            _ if task & CANARY != 0 => Reason::Canary,
            Purpose::First => Reason::First,
            Purpose::Confirm => Reason::Confirm,
            Purpose::Retry => Reason::Retry,
            Purpose::Robots => Reason::Robots,
        };
        self.0.requests.note(method, reason);
    }

    fn ended(&self, report: &Report) {
        let requests = &self.0.requests;
        let timings = report.timings();
        let opened = [
            (Phase::Dns, timings.resolve),
            (Phase::Connect, timings.connect),
            (Phase::Tls, timings.tls),
            (Phase::FirstByte, timings.first_byte),
        ];
        for (phase, took) in opened {
            if let Some(took) = took {
                requests.note_phase(phase, took);
            }
        }
        requests.note_phase(Phase::Total, timings.total);
        if report.reused() {
            requests.reused.inc();
        }
        if report.tls().is_some_and(|tls| tls.resumed) {
            requests.resumed.inc();
        }
    }
}
