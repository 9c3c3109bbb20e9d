//! robots.txt, which is read while it arrives, because a part of it is enough (RFC 9309 §2.5).

use std::collections::HashMap;

use super::HostCrawl;
use super::messages::{FetchId, FetchKind, Reply};
use crate::crawl::robots::{Access, READ};
use crate::find::visitor::Turn;

/// The bodies that arrive, with the statuses of their replies.
#[derive(Debug, Default)]
pub(super) struct Streams(HashMap<FetchId, (u16, Vec<u8>)>);

impl Streams {
    /// The body will not arrive.
    pub(super) fn forget(&mut self, id: FetchId) {
        self.0.remove(&id);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl HostCrawl {
    /// The head of a reply to a request that is [read while it arrives](super::Fetch::is_streamed). Returns whether the
    /// body is wanted; without the body, the reply was handled.
    pub fn handle_head(&mut self, turn: &mut Turn<'_>, id: FetchId, reply: &Reply<'_>) -> bool {
        let is_wanted = match self.in_flight.get(&id) {
            Some((task, FetchKind::Robots)) => {
                Access::of_status(reply.status, task.redirects) == Access::Parse
            }
            _ => false,
        };
        match is_wanted {
            true => drop(self.streams.0.insert(id, (reply.status, Vec::new()))),
            false => self.handle_reply(turn, id, reply),
        }
        is_wanted
    }

    /// A part of a wanted body arrived. Returns whether the rest is wanted; without the rest, the reply was handled.
    pub fn handle_data(&mut self, turn: &mut Turn<'_>, id: FetchId, bytes: &[u8]) -> bool {
        let Some((_, body)) = self.streams.0.get_mut(&id) else {
            return false;
        };
        // One byte more shows that the file is cut.
        let room = (READ + 1).saturating_sub(body.len());
        body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if body.len() <= READ {
            return true;
        }
        self.handle_end(turn, id);
        false
    }

    /// A wanted body has ended.
    pub fn handle_end(&mut self, turn: &mut Turn<'_>, id: FetchId) {
        if let Some((status, body)) = self.streams.0.remove(&id) {
            let reply = Reply {
                status,
                body: &body,
                ..Reply::default()
            };
            self.handle_reply(turn, id, &reply);
        }
    }
}
