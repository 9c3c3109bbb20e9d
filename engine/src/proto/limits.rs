//! Limits on what one response may make the client hold in memory. Each limit has its own error,
//! [`LimitExceeded`](crate::error::LimitExceeded).

/// Limits on one response.
///
/// ```
/// let limits = courser::Limits { body_bytes: Some(1 << 20), ..Default::default() };
/// assert_eq!(limits.head_bytes, 64 * 1024);
/// ```
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of all heads of one response, interim (1xx) heads included. Default 64 KiB (Go: 10 MiB, curl: 300 KiB,
    /// nginx's proxy: 4-8 KiB; well-known sites with large cookies and policies need more than 16 KiB).
    pub head_bytes: usize,
    /// Bytes of one line of a head, with its line end. Default 64 KiB (as Python; Node.js and h11: 16 KiB, curl: 100
    /// KiB). Has an effect only if it is less than [`head_bytes`](Self::head_bytes).
    pub header_line: usize,
    /// Headers in one head, and trailers in one body. Default 1,024, which is also the most that is ever taken.
    pub header_count: usize,
    /// Bytes of a body in memory, after transfer decoding; `None` for no limit. Default 64 MiB. Does not hold for
    /// streamed bodies, whose consumer limits them.
    pub body_bytes: Option<u64>,
    /// Bytes of one chunk-size line with its extensions. Default 4 KiB.
    pub chunk_line: usize,
    /// Bytes of chunked framing in one body beyond 8 for each byte of data. Default 16 KiB (as in Go since
    /// CVE-2023-39326).
    pub chunk_overhead: usize,
    /// Bytes of the trailer section. Default 16 KiB.
    pub trailer_bytes: usize,
    /// Interim (1xx) responses before the final one. Default 100.
    pub interim_responses: usize,
    /// Bytes of a body in memory, after its content codings are decoded, and bytes between two codings; `None` for no
    /// limit. Default 64 MiB. Does not hold for streamed bodies.
    pub decoded_bytes: Option<u64>,
    /// By what factor each coding may enlarge a body, beyond the first 1 MiB; `None` for no limit. Default 1,000:
    /// deflate reaches at most 1,032, and comes near that only with zeros. Holds for streamed bodies, too.
    pub decode_ratio: Option<u32>,
    /// The largest window of a zstd frame, as a power of two; what is not from 10 to 30 stands for the nearer of them.
    /// Default 23: the 8 MiB that RFC 9659 permits to every server.
    pub zstd_window_log: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            header_line: 64 * 1024,
            header_count: 1024,
            body_bytes: Some(64 * 1024 * 1024),
            chunk_line: 4 * 1024,
            chunk_overhead: 16 * 1024,
            trailer_bytes: 16 * 1024,
            interim_responses: 100,
            decoded_bytes: Some(64 * 1024 * 1024),
            decode_ratio: Some(1000),
            zstd_window_log: 23,
        }
    }
}
