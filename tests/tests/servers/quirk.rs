//! What servers do that they should not, or need not, and how the client copes.

/// Something that a server does, and a check has asserted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Quirk {
    /// The connection ends after HEAD, though not after GET. The next call opens another.
    ClosesAfterHead,
    /// The connection ends after 204, though not after 200. The next call opens another.
    ClosesAfterNoContent,
    /// `If-Modified-Since` with the server's own `Last-Modified` does not lead to 304, because the server compares it
    /// with a time that has fractions of a second. The client gets the whole body.
    IgnoresDates,
    /// A trailer of the server behind becomes a header line that ends with a second CR. The client refuses such a
    /// head (RFC 9112 §2.2) with `PeerFault::BadHeader`.
    TrailerInHead,
    /// The server never sends 100 (Continue). The client sends the body when its wait is over.
    NeverContinues,
    /// The server sends 100 (Continue) before it asks the application, which then refuses. The client has sent some
    /// of the body, and reports the answer.
    ContinuesThenRefuses,
    /// The server closes the connection, and leaves requests behind the first one without an answer. The client sends
    /// them again, one at a time.
    NoPipelining,
    /// Of requests that arrive together, the server answers the first one and forgets the others. They fail by their
    /// time limit; then the client sends one request at a time.
    ForgetsRequests,
}
