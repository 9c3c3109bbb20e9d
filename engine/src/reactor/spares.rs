//! Free buffers, kept for the next calls that need buffers.

use crate::proto::{Decoder, Request, Response};

#[derive(Default)]
pub(crate) struct Spares {
    /// For the answers of abandoned calls, and for streamed bodies.
    responses: Vec<Response>,
    /// For calls with a streamed body, whose own request goes back to the caller together with the head.
    requests: Vec<Request>,
    /// For streamed bodies: when such a body ends, the caller has the response to which the decoder belonged.
    #[expect(clippy::vec_box, reason = "a response has its decoder in a box, too")]
    decoders: Vec<Box<Decoder>>,
}

impl Spares {
    pub(crate) fn take_response(&mut self) -> Response {
        self.responses.pop().unwrap_or_default()
    }

    pub(crate) fn put_response(&mut self, mut response: Response) {
        if self.responses.len() < MAX_RESPONSES {
            response.clear();
            self.responses.push(response);
        }
    }

    pub(crate) fn take_request(&mut self) -> Request {
        self.requests.pop().unwrap_or_default()
    }

    pub(crate) fn put_request(&mut self, mut request: Request) {
        if self.requests.len() < MAX_RESPONSES {
            // It may have had the URL of a call whose body was read.
            request.set_target("");
            self.requests.push(request);
        }
    }

    /// Gives a spare decoder to a response that has none.
    pub(crate) fn lend_decoder(&mut self, response: &mut Response) {
        let decoder = response.decoder();
        if decoder.is_none() {
            *decoder = self.decoders.pop();
        }
    }

    pub(crate) fn take_back_decoder(&mut self, response: &mut Response) {
        if self.decoders.len() < MAX_DECODERS
            && let Some(decoder) = response
                .decoder()
                .take_if(|decoder| decoder.idle_memory() <= MAX_DECODER_MEMORY)
        {
            self.decoders.push(decoder);
        }
    }
}

/// The most spare responses, and the most spare requests.
const MAX_RESPONSES: usize = 16;

const MAX_DECODERS: usize = 4;

/// A decoder with more memory is freed instead of kept.
const MAX_DECODER_MEMORY: usize = 4 * 1024 * 1024;
