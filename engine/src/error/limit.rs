//! The limits that a call can exceed.

use std::fmt;

/// Which limit of the client was exceeded, with its value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LimitExceeded {
    /// [`Limits::head_bytes`](crate::Limits::head_bytes).
    HeadBytes(usize),
    /// [`Limits::header_line`](crate::Limits::header_line).
    HeaderLine(usize),
    /// [`Limits::header_count`](crate::Limits::header_count).
    HeaderCount(usize),
    /// [`Limits::body_bytes`](crate::Limits::body_bytes).
    BodyBytes(u64),
    /// [`HostConfig::held_bytes`](crate::HostConfig::held_bytes).
    HeldBytes(u64),
    /// [`Limits::chunk_line`](crate::Limits::chunk_line).
    ChunkLine(usize),
    /// [`Limits::chunk_overhead`](crate::Limits::chunk_overhead).
    ChunkOverhead(usize),
    /// [`Limits::trailer_bytes`](crate::Limits::trailer_bytes).
    TrailerBytes(usize),
    /// [`Limits::interim_responses`](crate::Limits::interim_responses).
    InterimResponses(usize),
    /// The number of content codings applied to one body; the limit is fixed.
    ContentCodings(usize),
    /// [`Limits::decoded_bytes`](crate::Limits::decoded_bytes).
    DecodedBytes(u64),
    /// [`Limits::decode_ratio`](crate::Limits::decode_ratio), or the fixed ratio of 16 for the data between two codings.
    DecodeRatio(u32),
    /// [`Limits::zstd_window_log`](crate::Limits::zstd_window_log).
    ZstdWindow(u8),
    /// [`HostConfig::max_waiting`](crate::HostConfig::max_waiting).
    Waiting(usize),
    /// [`HostConfig::max_connections`](crate::HostConfig::max_connections) or
    /// [`Config::max_connections`](crate::Config::max_connections), under
    /// [`WaitPolicy::FailFast`](crate::policy::WaitPolicy::FailFast).
    Connections(usize),
    /// [`HostConfig::rate`](crate::HostConfig::rate), [`HostConfig::min_delay`](crate::HostConfig::min_delay) or
    /// [`Config::rate`](crate::Config::rate), under [`WaitPolicy::FailFast`](crate::policy::WaitPolicy::FailFast).
    Rate,
    /// [`Redirects::limit`](crate::Redirects::limit).
    Redirects(u32),
    /// [`SharedConfig::max_in_flight`](crate::SharedConfig::max_in_flight).
    InFlight(usize),
    /// [`PipelineConfig::max_pending_total`](crate::PipelineConfig::max_pending_total), by the
    /// [`overflow`](crate::PipelineConfig::overflow) policy.
    Pending(usize),
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeadBytes(n) => write!(f, "response head over {n} bytes"),
            Self::HeaderLine(n) => write!(f, "header line over {n} bytes in the response"),
            Self::HeaderCount(n) => write!(f, "more than {n} headers in the response"),
            Self::BodyBytes(n) => write!(f, "response body over {n} bytes"),
            Self::HeldBytes(n) => write!(f, "response bodies of all calls over {n} bytes"),
            Self::ChunkLine(n) => write!(f, "chunk-size line over {n} bytes"),
            Self::ChunkOverhead(n) => write!(f, "chunked framing overhead over {n} bytes"),
            Self::TrailerBytes(n) => write!(f, "trailers over {n} bytes"),
            Self::InterimResponses(n) => write!(f, "more than {n} interim (1xx) responses"),
            Self::ContentCodings(n) => write!(f, "more than {n} content codings"),
            Self::DecodedBytes(n) => write!(f, "decoded response body over {n} bytes"),
            Self::DecodeRatio(n) => write!(f, "decoded response body over {n} times its size"),
            Self::ZstdWindow(n) => write!(f, "zstd window over 2^{n} bytes"),
            Self::Waiting(n) => write!(f, "{n} calls are waiting for a connection already"),
            Self::Connections(n) => write!(f, "all {n} connections are in use"),
            Self::Rate => write!(f, "the rate of requests is used up"),
            Self::Redirects(n) => write!(f, "more than {n} redirects"),
            Self::InFlight(n) => write!(f, "{n} calls are in flight already"),
            Self::Pending(n) => write!(f, "{n} calls are pending already"),
        }
    }
}
