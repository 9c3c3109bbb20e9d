//! robots.txt, which is read while it arrives, because a part of it is enough (RFC 9309 §2.5).

use super::HostCrawl;
use super::messages::{FetchKind, Reply};
use crate::visitor::Turn;
use crawl::robots::{Access, READ};
use crawl::work::{Body, RequestId};

impl HostCrawl {
    /// The head of a reply to a request for [robots.txt](FetchKind::Robots). Without the body, the reply was handled.
    pub fn handle_head(&mut self, turn: &mut Turn<'_>, id: RequestId, reply: &Reply<'_>) -> Body {
        let is_wanted = match self.in_flight.get(&id) {
            Some((task, FetchKind::Robots)) => {
                Access::of_status(reply.status, task.redirects) == Access::Parse
            }
            _ => false,
        };
        if !is_wanted {
            self.handle_reply(turn, id, reply);
            return Body::Unwanted;
        }
        self.streams.insert(id, (reply.status, Vec::new()));
        Body::Wanted
    }

    /// A part of a wanted body arrived. Without the rest, the reply was handled.
    pub fn handle_data(&mut self, turn: &mut Turn<'_>, id: RequestId, bytes: &[u8]) -> Body {
        let Some((_, body)) = self.streams.get_mut(&id) else {
            return Body::Unwanted;
        };
        // One byte more shows that the file is cut.
        let room = (READ + 1).saturating_sub(body.len());
        body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if body.len() <= READ {
            return Body::Wanted;
        }
        self.handle_end(turn, id);
        Body::Unwanted
    }

    /// A wanted body has ended.
    pub fn handle_end(&mut self, turn: &mut Turn<'_>, id: RequestId) {
        if let Some((status, body)) = self.streams.remove(&id) {
            let reply = Reply {
                status,
                body: &body,
                ..Reply::default()
            };
            self.handle_reply(turn, id, &reply);
        }
    }
}
