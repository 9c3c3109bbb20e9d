//! The differences that are wanted, or that are left, each with its reason.

use Part::{Exit, Output, Verbose, Wire};

/// What can differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    Exit,
    Output,
    Wire,
    Verbose,
    Files,
}

/// Scenarios that differ from curl for one reason.
pub(crate) struct Known {
    pub(crate) why: &'static str,
    /// The parts in which they may, and have to, differ.
    pub(crate) parts: &'static [Part],
    pub(crate) scenarios: &'static [&'static str],
}

/// What is known of that scenario.
pub(crate) fn of(scenario: &str) -> impl Iterator<Item = &'static Known> {
    KNOWN
        .iter()
        .filter(move |known| known.scenarios.contains(&scenario))
}

pub(crate) const KNOWN: &[Known] = &[
    Known {
        why: "The engine writes the name `User-Agent` itself; curl sends it in the case in which it was typed.",
        parts: &[Wire],
        scenarios: &["request/replaced"],
    },
    Known {
        why: "Sizes of chunks have leading zeros: the engine leaves room for them and fills it in.",
        parts: &[Wire],
        scenarios: &["request/upload-stdin"],
    },
    Known {
        why: "Credentials are not shown.",
        parts: &[Verbose],
        scenarios: &["request/verbose-user"],
    },
    Known {
        why: "Bytes outside ASCII are percent-encoded everywhere in a target, with upper-case digits (RFC 3986 §2.1).",
        parts: &[Wire],
        scenarios: &["location/utf-8", "url/utf-8"],
    },
    Known {
        why: "The URL is shown as it was sent.",
        parts: &[Output],
        scenarios: &["location/utf-8"],
    },
    Known {
        why: "What follows a 101 that was asked for is another protocol's. curl prints it.",
        parts: &[Output],
        scenarios: &["answer/101"],
    },
    Known {
        why: "A head that is cut short is an error, 56, wherever it is cut. curl says 52, 18 or even 0.",
        parts: &[Exit],
        scenarios: &["broken/head"],
    },
    Known {
        why: "Two lengths that differ may be an attack on whoever shares the connection (RFC 9112 §6.3).",
        parts: &[Exit, Output],
        scenarios: &["broken/lengths-differ"],
    },
    Known {
        why: "`--max-filesize` holds for bodies of unannounced length too.",
        parts: &[Exit, Output],
        scenarios: &["limit/size-unannounced"],
    },
    Known {
        why: "A coding that ends before its end is an error, 61, although the framing is whole. curl says nothing.",
        parts: &[Exit],
        scenarios: &["coding/gzip-cut"],
    },
    Known {
        why: "Only 300 to 303, 307 and 308 are redirects (RFC 9110 §15.4). curl follows every 3xx with a `Location`.",
        parts: &[Output, Wire],
        scenarios: &["redirect/304/get"],
    },
    Known {
        why: "Credentials are dropped for good once a redirect has left their origin.",
        parts: &[Wire],
        scenarios: &["origin/port/back-again"],
    },
    Known {
        why: "What is wrong with the files of TLS is found before there is a connection.",
        parts: &[Wire],
        scenarios: &["tls/client-mismatch", "tls/no-such-ca"],
    },
    Known {
        why: "A body that ends without close_notify may be cut short (RFC 9112 §9.8).",
        parts: &[Exit],
        scenarios: &["tls/end/unframed-cut"],
    },
];
