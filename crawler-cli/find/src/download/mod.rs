//! Downloads: what a response means, and how the bytes come to disk. Which file is next and when to retry is decided by the
//! host crawl, of which each file is a task. No sockets and no clock. Reads and writes only the downloaded files.
//!
//! A file is written to a partial file, and renamed when it is complete: when it has the length in the head of the
//! response; the size in a listing is a hint. An interrupted download is resumed, in this or a later run, if a strong
//! validator shows that the server's file is unchanged; otherwise it starts over. An existing file that agrees with the
//! listing is kept without a request; another one is compared with the head of the answer, and replaced only on demand.

use std::collections::HashMap;

use super::host_crawl::{FetchKind, FileEnd, HostCrawl};
use super::visitor::Turn;
use crawl::work::{Body, RequestId};

mod answer;
mod disk;
mod names;
mod store;
#[cfg(test)]
mod tests;
mod wanted;

pub(super) use disk::Root;
pub(super) use names::Base;
pub(super) use store::{Flight, Store};
pub(super) use wanted::Wanted;

/// The downloads of one host that are under way.
#[derive(Debug, Default)]
pub(super) struct Downloads(HashMap<RequestId, Flight>);

/// A request to send.
#[derive(Debug)]
pub(super) struct Get<'a> {
    pub(super) id: RequestId,
    pub(super) url: &'a str,
    /// The offset of the first byte, and the value of `If-Range`.
    pub(super) rest: Option<(u64, &'a str)>,
}

/// What downloads are handled with.
pub(super) struct Around<'a, 'v> {
    pub(super) crawl: &'a mut HostCrawl,
    pub(super) store: &'a mut Store,
    pub(super) turn: Turn<'v>,
}

impl Downloads {
    /// The next request. Handles files on the way that need none.
    pub(super) fn poll_request<'a>(&'a mut self, on: &'a mut Around<'_, '_>) -> Option<Get<'a>> {
        let id = loop {
            let task = on.crawl.next_file(&mut on.turn)?;
            let wanted = task.wanted.as_deref()?;
            match on.store.prepare(wanted) {
                Ok(flight) => {
                    let id = on.crawl.send(on.turn.now, task, FetchKind::File);
                    self.0.insert(id, flight);
                    break id;
                }
                Err(end) => {
                    on.store.report(wanted, &end, on.turn.visitor);
                    on.crawl.settle_file(&mut on.turn, task, end);
                }
            }
        };
        let rest = self.0.get(&id).and_then(Flight::rest);
        Some(Get {
            id,
            url: on.crawl.wanted(id)?.0.asked(),
            rest: rest.and_then(|(at, note)| Some((at, note.validator.as_deref()?))),
        })
    }

    /// Lets `act` handle a request, which is over if `act` returns an end. Returns whether its body goes on.
    pub(super) fn handle(
        &mut self,
        id: RequestId,
        on: &mut Around<'_, '_>,
        act: impl FnOnce(&mut Store, &mut Wanted, &mut Flight) -> Result<(), FileEnd>,
    ) -> Body {
        let Some((flight, (wanted, attempts))) = self.0.get_mut(&id).zip(on.crawl.wanted(id))
        else {
            return Body::Unwanted;
        };
        let Err(end) = act(on.store, wanted, flight) else {
            return Body::Wanted;
        };
        let came = flight.partial.as_ref();
        if came.is_some_and(|partial| partial.length - partial.begun_at >= PROGRESS) {
            attempts.start_over(on.turn.now);
        }
        on.store.report(wanted, &end, on.turn.visitor);
        // The file is closed before another request for it is sent.
        self.0.remove(&id);
        on.crawl.end_file(&mut on.turn, id, end);
        Body::Unwanted
    }
}

/// Progress in bytes after which attempts are counted anew.
const PROGRESS: u64 = 1 << 20;
