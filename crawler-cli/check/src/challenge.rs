//! Recognises answers of bot protections, which say nothing about the URL.

use courser::Response;
use memchr::memmem;

/// The header field by which a bot protection says that it answered instead of the server: `cf-mitigated: challenge`.
///
/// ```
/// assert_eq!(check::challenge::blocked_by(&courser::Response::new()), None);
/// ```
pub fn blocked_by(response: &Response) -> Option<String> {
    ["cf-mitigated", "x-amzn-waf-action"]
        .into_iter()
        .find_map(|name| {
            let value = response.header(name)?;
            Some(format!("{name}: {}", value.escape_ascii()))
        })
}

/// Whether the beginning of a page is a challenge: a page that a browser has to solve before it gets the real one.
/// Phrases alone decide nothing; each of these is markup that only such pages have.
///
/// ```
/// use check::challenge::is_challenge_page;
///
/// assert!(is_challenge_page(b"<script>window._cf_chl_opt={};</script>"));
/// assert!(!is_challenge_page(b"<title>How a CAPTCHA works</title>"));
/// ```
pub fn is_challenge_page(body: &[u8]) -> bool {
    MARKERS
        .iter()
        .any(|marker| memmem::find(body, marker.as_bytes()).is_some())
}

/// Markup of the challenge pages of Cloudflare, Imperva, DataDome, HUMAN (PerimeterX), AWS WAF, Sucuri and DDoS-Guard.
const MARKERS: [&str; 12] = [
    "_cf_chl_opt",
    "cf-browser-verification",
    "id=\"challenge-form\"",
    "id=\"challenge-running\"",
    "<title>Just a moment...</title>",
    "<title>Attention Required! | Cloudflare</title>",
    "_Incapsula_Resource",
    "captcha-delivery.com",
    "px-captcha",
    "awsWafCookieDomainList",
    "sucuri_cloudproxy_js",
    "<title>DDoS-Guard</title>",
];
