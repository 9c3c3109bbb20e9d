//! The differences that are wanted, or that are left, each with its reason.

use Part::{Exit, Files, Output, Verbose, Wire};

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
    /// In which parts which scenarios differ. They have to.
    pub(crate) differ: &'static [(&'static [Part], &'static [&'static str])],
}

/// The parts in which that scenario may, and has to, differ.
pub(crate) fn parts(scenario: &str) -> Vec<Part> {
    let groups = KNOWN.iter().flat_map(|known| known.differ);
    let named = groups.filter(|(_, scenarios)| scenarios.contains(&scenario));
    named.flat_map(|(parts, _)| *parts).copied().collect()
}

/// Why that scenario differs.
pub(crate) fn reasons(scenario: &str) -> Vec<&'static str> {
    let named = |known: &&Known| known.differ.iter().any(|(_, s)| s.contains(&scenario));
    KNOWN.iter().filter(named).map(|known| known.why).collect()
}

pub(crate) const KNOWN: &[Known] = &[
    Known {
        why: "A header line that is none ends the transfer: a colon is missing, or there is space or a control \
              character in it (RFC 9112 §5, §11.1). curl takes such lines, or stops with 43, \"bad argument\".",
        differ: &[
            (
                &[Exit],
                &[
                    "data/h11-11",
                    "data/h11-12",
                    "data/h11-13",
                    "data/h11-14",
                    "data/h11-17",
                    "data/h11-18",
                    "data/h11-19",
                    "data/llhttp-invalid-108",
                    "malformed/folded-first",
                ],
            ),
            (
                &[Exit, Output],
                &[
                    "data/llhttp-sample-574",
                    "framing/odd-bytes/GET",
                    "framing/odd-bytes/HEAD",
                    "framing/odd-bytes/POST",
                    "malformed/empty-name",
                    "malformed/space-before-colon",
                ],
            ),
        ],
    },
    Known {
        why: "A status line that is none ends the transfer with 1, as curl says for most of them; curl takes \
              these, or says 8 for a NUL.",
        differ: &[
            (
                &[Exit],
                &[
                    "data/h11-15",
                    "data/llhttp-invalid-132",
                    "data/llhttp-invalid-231",
                    "malformed/nul-in-status",
                ],
            ),
            (
                &[Exit, Output],
                &[
                    "data/llhttp-invalid-176",
                    "malformed/http-2",
                    "malformed/lower-case",
                ],
            ),
        ],
    },
    Known {
        why: "A Content-Length that is no number, or two that differ, may be an attack on whoever shares the \
              connection (RFC 9112 §6.3). curl takes one of them, or what can be read as a number.",
        differ: &[
            (
                &[Exit],
                &[
                    "data/h11-22",
                    "data/h11-23",
                    "data/h11-26",
                    "data/h11-27",
                    "data/h11-28",
                    "malformed/length-hex",
                ],
            ),
            (
                &[Exit, Output],
                &[
                    "malformed/length-differs",
                    "malformed/length-list-differs",
                    "malformed/length-overflow",
                    "malformed/length-plus",
                    "malformed/length-tail",
                ],
            ),
        ],
    },
    Known {
        why: "A transfer coding other than one chunked, or any in HTTP/1.0, leaves the framing in doubt (RFC 9112 \
              §6.1). curl reads on as if it were chunked.",
        differ: &[
            (
                &[Exit],
                &[
                    "data/h11-31",
                    "data/llhttp-transfer-encoding-43",
                    "data/llhttp-transfer-encoding-74",
                ],
            ),
            (
                &[Exit, Output],
                &[
                    "data/llhttp-transfer-encoding-389",
                    "http10/chunked",
                    "malformed/coding-identity",
                    "malformed/coding-twice",
                ],
            ),
        ],
    },
    Known {
        why: "Chunk lines with space in them or ended by LF alone, chunks that are shorter than their size, and \
              trailers that are no headers are errors (RFC 9112 §7.1). curl takes them, or says 43 where others \
              say 56.",
        differ: &[
            (
                &[Exit],
                &[
                    "malformed/chunk-hex",
                    "malformed/chunk-too-short",
                    "malformed/trailer-bad",
                ],
            ),
            (
                &[Exit, Output],
                &[
                    "data/h11-37",
                    "data/h11-39",
                    "data/llhttp-transfer-encoding-212",
                    "data/llhttp-transfer-encoding-345",
                    "data/llhttp-transfer-encoding-4",
                    "malformed/chunk-lf",
                    "malformed/chunk-space",
                ],
            ),
        ],
    },
    Known {
        why: "A head that is cut short is an error, 56, wherever it is cut. curl says 52, 18 or even 0.",
        differ: &[(
            &[Exit],
            &[
                "data/llhttp-invalid-212",
                "ended/first-line/close",
                "ended/head/close",
                "ended/interim/close",
                "ended/name/close",
                "ended/status-line/close",
                "ended/version/close",
                "interim/only",
            ],
        )],
    },
    Known {
        why: "101 that was not asked for is an error, and what follows one that was asked for is another \
              protocol's. curl prints it.",
        differ: &[
            (
                &[Exit, Output],
                &[
                    "data/llhttp-connection-293",
                    "data/llhttp-connection-331",
                    "malformed/interim-101",
                ],
            ),
            (&[Output], &["interim/101"]),
        ],
    },
    Known {
        why: "Heads have limits; curl's own is \"out of memory\", 27, and it reads interim responses for as long \
              as they come.",
        differ: &[(
            &[Exit],
            &["malformed/head-500k", "malformed/interim-forever"],
        )],
    },
    Known {
        why: "`--max-filesize` holds for bodies of unannounced length too.",
        differ: &[(
            &[Exit, Output],
            &["limit/filesize-chunked", "limit/filesize-close"],
        )],
    },
    Known {
        why: "curl counts trailers as headers, but for the last one.",
        differ: &[(&[Output], &["framing/chunked-trailers/POST"])],
    },
    Known {
        why: "curl goes over to HTTP/1.0 requests after a response of HTTP/1.0.",
        differ: &[(&[Wire], &["kept/keep-alive-1.0"])],
    },
    Known {
        why: "curl closes the connection when `-f` ends a transfer; a short body that nobody wants is drained \
              here.",
        differ: &[(&[Wire], &["output/fail-two", "globs/fail-late"])],
    },
    Known {
        why: "A file that cannot be read is an error. curl warns, and sends an empty body.",
        differ: &[(&[Exit, Output, Wire], &["refused/no-such-file"])],
    },
    Known {
        why: "curl loses what follows a NUL in a file of `-d`; here the NUL alone goes.",
        differ: &[(&[Wire], &["request/data-file", "request/data-mixed"])],
    },
    Known {
        why: "Sizes of chunks have leading zeros: the engine leaves room for them and fills it in.",
        differ: &[(&[Wire], &["request/data-chunked", "form-with/chunked"])],
    },
    Known {
        why: "curl sends a body without any framing when told to; the engine frames every body.",
        differ: &[(&[Wire], &["request/data-length-removed"])],
    },
    Known {
        why: "The engine writes the name `User-Agent` itself; curl sends it in the case in which it was typed.",
        differ: &[(&[Wire], &["request/replaced"])],
    },
    Known {
        why: "Credentials are not shown.",
        differ: &[
            (&[Verbose], &["request/verbose-user"]),
            (
                &[Output],
                &[
                    "url/password-only",
                    "url/user",
                    "url/user-empty",
                    "url/user-encoded",
                    "url/user-only",
                ],
            ),
        ],
    },
    Known {
        why: "Bytes outside ASCII are percent-encoded everywhere in a target, with upper-case digits (RFC 3986 \
              §2.1). curl sends those of a query as they are, and shows them as they were typed.",
        differ: &[(&[Output, Wire], &["target/utf-8", "target/utf-8/as-is"])],
    },
    Known {
        why: "Names of hosts are sent in lower case (RFC 3986 §6.2.2.1).",
        differ: &[(&[Output, Wire], &["url/upper-host"])],
    },
    Known {
        why: "The last `@` ends the user information, as in browsers. curl refuses a second one.",
        differ: &[(&[Exit, Output, Wire], &["url/user-at"])],
    },
    Known {
        why: "Location is understood as by browsers.",
        differ: &[(
            &[Output],
            &[
                "location/backslash/told",
                "location/bad-port/told",
                "location/fragment-only/told",
                "location/no-slashes/told",
                "location/odd/told",
                "location/path-encoded-dots/told",
                "location/scheme-one-slash/told",
                "location/scheme-only/told",
                "location/scheme-slashes/told",
                "location/space-query/told",
                "location/tab/told",
                "location/text-port/told",
                "location/utf-8/told",
            ],
        )],
    },
    Known {
        why: "Location is understood as by browsers.",
        differ: &[
            (
                &[Output, Wire],
                &[
                    "location/backslash",
                    "location/fragment-only",
                    "location/odd",
                    "location/path-encoded-dots",
                    "location/space-query",
                    "location/utf-8",
                ],
            ),
            (&[Output], &["location/mailto/told"]),
            (
                &[Exit, Output, Wire],
                &[
                    "location/no-slashes",
                    "location/scheme-one-slash",
                    "location/scheme-only",
                    "location/tab",
                ],
            ),
        ],
    },
    Known {
        why: "curl shows the URL of a redirect to a scheme that it does not speak as the one that it has gone to.",
        differ: &[(&[Output], &["location/file-scheme"])],
    },
    Known {
        why: "Credentials are not shown.",
        differ: &[(
            &[Output],
            &[
                "location/userinfo",
                "location/userinfo-only-user",
                "location/userinfo-only-user/told",
                "location/userinfo/told",
                "tls/redirect/same",
                "tls/url",
            ],
        )],
    },
    Known {
        why: "`Cookie` has its pairs separated by `; ` and in the order of RFC 6265 §5.4: cookies of longer paths first, then older ones. curl compares lengths of names too, and writes its file in the order of a hash table.",
        differ: &[
            (
                &[Wire],
                &[
                    "cookie/file",
                    "cookie/file-and-text",
                    "cookie/file-deep",
                    "cookie/file-session",
                    "cookie/kept-several",
                    "cookie/quoted",
                    "cookie/text-two",
                ],
            ),
            (&[Files], &["cookie/jar"]),
            (&[Wire, Files], &["cookie/jar-both"]),
        ],
    },
    Known {
        why: "A file of response heads is no cookie file.",
        differ: &[(&[Wire], &["cookie/file-headers"])],
    },
    Known {
        why: "The comments of a cookie file name the program that wrote it.",
        differ: &[(&[Output], &["cookie/jar-stdout"])],
    },
    Known {
        why: "A 416 that names another length than that of the file is an error, 33: the file is not complete. curl says nothing, and counts the body that it drops.",
        differ: &[
            (&[Exit], &["resume/past-end-other/fail"]),
            (
                &[Exit, Output],
                &[
                    "resume/past-end-other/end",
                    "resume/past-end-other/offset",
                    "resume/past-end-other/stdout",
                ],
            ),
        ],
    },
    Known {
        why: "Text that encoder=7bit cannot send is an error before the request. curl sends the head first.",
        differ: &[(&[Wire], &["form/encoder-7bit-not"])],
    },
    Known {
        why: "A field that is sent as quoted-printable is encoded first, so that its length is known. curl sends it in chunks.",
        differ: &[(&[Wire], &["form/encoder-quoted"])],
    },
    Known {
        why: "`--etag-save` stores the ETag of a whole response, after its body: what failed is to be fetched again. curl stores that of any head.",
        differ: &[
            (&[Files], &["etag/failed"]),
            (&[Output], &["etag/save-dash"]),
        ],
    },
    Known {
        why: "`-b` is text for the server that the URL names: like all credentials, it is dropped for good once a redirect has left that origin. curl sends it to every server, and a `Cookie` header again to the first one.",
        differ: &[(
            &[Wire],
            &[
                "redirect/to-both/and-back",
                "redirect/to-both/cookie",
                "redirect/to-name/and-back",
                "redirect/to-name/cookie",
                "redirect/to-port/and-back",
                "redirect/to-port/cookie",
            ],
        )],
    },
    Known {
        why: "Only 300 to 303, 307 and 308 are redirects (RFC 9110 §15.4). curl follows every 3xx with a `Location`.",
        differ: &[(
            &[Output, Wire],
            &[
                "redirect/304/DELETE",
                "redirect/304/GET",
                "redirect/304/HEAD",
                "redirect/304/PATCH",
                "redirect/304/POST",
                "redirect/304/POST-chunked",
                "redirect/304/POST-json",
                "redirect/304/PUT-data",
                "redirect/304/PUT-file",
                "redirect/304/post301",
                "redirect/304/post302",
                "redirect/304/post303",
                "redirect/305/DELETE",
                "redirect/305/GET",
                "redirect/305/HEAD",
                "redirect/305/PATCH",
                "redirect/305/POST",
                "redirect/305/POST-chunked",
                "redirect/305/POST-json",
                "redirect/305/PUT-data",
                "redirect/305/PUT-file",
                "redirect/305/post301",
                "redirect/305/post302",
                "redirect/305/post303",
                "redirect/306/DELETE",
                "redirect/306/GET",
                "redirect/306/HEAD",
                "redirect/306/PATCH",
                "redirect/306/POST",
                "redirect/306/POST-chunked",
                "redirect/306/POST-json",
                "redirect/306/PUT-data",
                "redirect/306/PUT-file",
                "redirect/306/post301",
                "redirect/306/post302",
                "redirect/306/post303",
                "redirect/399/DELETE",
                "redirect/399/GET",
                "redirect/399/HEAD",
                "redirect/399/PATCH",
                "redirect/399/POST",
                "redirect/399/POST-chunked",
                "redirect/399/POST-json",
                "redirect/399/PUT-data",
                "redirect/399/PUT-file",
                "redirect/399/post301",
                "redirect/399/post302",
                "redirect/399/post303",
            ],
        )],
    },
    Known {
        why: "Headers that describe the body go with it, also those of `-H` (RFC 9110 §15.4).",
        differ: &[(
            &[Wire],
            &[
                "redirect/301/POST-json",
                "redirect/302/POST-json",
                "redirect/303/POST-json",
            ],
        )],
    },
    Known {
        why: "A `Host` of `-H` is for the host and the port of the first URL. curl sends it to other ports, too.",
        differ: &[(&[Wire], &["redirect/to-port/host-header"])],
    },
    Known {
        why: "Sizes of chunks have leading zeros.",
        differ: &[(
            &[Wire],
            &[
                "redirect/300/POST-chunked",
                "redirect/304/POST-chunked",
                "redirect/305/POST-chunked",
                "redirect/306/POST-chunked",
                "redirect/307/POST-chunked",
                "redirect/308/POST-chunked",
                "redirect/399/POST-chunked",
                "parallel/stdin",
                "upload/stdin",
                "upload/stdin-http10",
            ],
        )],
    },
    Known {
        why: "A method for which a body is usual says that there is none: `Content-Length: 0` (RFC 9110 §8.6).",
        differ: &[(
            &[Wire],
            &[
                "redirect/301/PATCH",
                "redirect/301/PUT-data",
                "redirect/302/PATCH",
                "redirect/302/PUT-data",
                "redirect/303/PATCH",
                "redirect/303/PUT-data",
            ],
        )],
    },
    Known {
        why: "The peer sends bodies after HEAD: the bytes nobody asked for end the connection.",
        differ: &[
            (&[Output, Wire], &["redirect/chain/heads-only"]),
            (&[Wire], &["globs/head"]),
        ],
    },
    Known {
        why: "A file with several gzip members is one body (RFC 1952 §2.2), and what is no part of the coding is an error, 61. curl says 23.",
        differ: &[
            (
                &[Exit],
                &["coding/br-surplus/decoded", "coding/gzip-surplus/decoded"],
            ),
            (&[Exit, Output], &["coding/members/decoded"]),
        ],
    },
    Known {
        why: "A coding that ends before its end is an error, 61, although the framing is whole. curl says nothing.",
        differ: &[(
            &[Exit],
            &[
                "coding/br-cut/decoded",
                "coding/deflate-cut/decoded",
                "coding/gzip-cut-trailer/decoded",
                "coding/gzip-cut/decoded",
                "coding/zstd-cut/decoded",
            ],
        )],
    },
    Known {
        why: "What was decoded before an error is written, or not, in other portions.",
        differ: &[(&[Output], &["coding/deflate-crc/decoded"])],
    },
    Known {
        why: "The body of a redirect is decoded, though nobody wants it: one that is broken costs the connection.",
        differ: &[(&[Exit, Output, Wire], &["coding/with/redirect"])],
    },
    Known {
        why: "`--max-filesize` holds for what is written. curl counts what is announced.",
        differ: &[(&[Exit, Output], &["coding/with/filesize"])],
    },
    Known {
        why: "A removed `Accept-Encoding` asks for the engine's own.",
        differ: &[(&[Wire], &["coding/with/accept-removed"])],
    },
    Known {
        why: "A transfer coding other than chunked is refused.",
        differ: &[(&[Exit], &["coding/with/transfer"])],
    },
    Known {
        why: "Names of hosts are sent in lower case.",
        differ: &[(&[Wire], &["routing/resolve-case"])],
    },
    Known {
        why: "A `--connect-to` without a colon is an error. curl ignores it.",
        differ: &[(&[Exit, Output, Wire], &["routing/connect-to-bad"])],
    },
    Known {
        why: "`localhost.` is the same host as `localhost`.",
        differ: &[(&[Exit, Output, Wire], &["url/trailing-dot"])],
    },
    Known {
        why: "What is wrong with the files of TLS is found before there is a connection.",
        differ: &[(
            &[Wire],
            &[
                "tls/client/garbage",
                "tls/client/mismatch",
                "tls/client/missing",
                "tls/client/missing-key",
                "tls/client/no-key",
                "tls/garbage-ca",
                "tls/garbage-crl",
                "tls/no-such-ca",
                "tls/no-such-crl",
            ],
        )],
    },
    Known {
        why: "What is wrong with the files of TLS is found before there is a connection, and then no certificate has been checked.",
        differ: &[(
            &[Output, Wire],
            &[
                "proxy/over-tls/cacert-garbage",
                "proxy/over-tls/cacert-missing",
            ],
        )],
    },
    Known {
        why: "A certificate that need not be right is not checked: 0.",
        differ: &[(
            &[Output],
            &["proxy/over-tls/insecure", "proxy/over-tls/insecure-connect"],
        )],
    },
    Known {
        why: "A body that ends without close_notify may be cut short (RFC 9112 §9.8).",
        differ: &[(&[Exit], &["tls/end/unframed-cut"])],
    },
    Known {
        why: "The common name of a certificate is no name of a server (RFC 9525 §2).",
        differ: &[(
            &[Exit, Output, Wire],
            &["tls/no-san/cacert", "tls/no-san/crl", "tls/no-san/formats"],
        )],
    },
    Known {
        why: "A self-signed certificate is one whose issuer is not known.",
        differ: &[(&[Output], &["tls/self-signed/formats"])],
    },
    Known {
        why: "A connection on which a body was held back is not used again.",
        differ: &[(&[Exit, Output, Wire], &["upload/refused-417"])],
    },
    Known {
        why: "Interim answers to CONNECT are passed over (RFC 9110 §15.2).",
        differ: &[(&[Exit, Output, Wire], &["proxy/connect/interim"])],
    },
    Known {
        why: "A `Proxy-Authorization` of `-H` is for the proxy. curl sends it to the server, inside a tunnel and past the proxy too.",
        differ: &[(
            &[Wire],
            &[
                "proxy/authorization-noproxy",
                "proxy/connect/authorization-header",
            ],
        )],
    },
    Known {
        why: "A `Proxy-Authorization` of the user's goes in place of that of `-U`. curl sends both.",
        differ: &[(&[Wire], &["proxy/authorization-both"])],
    },
    Known {
        why: "Credentials are not shown.",
        differ: &[(
            &[Verbose],
            &[
                "proxy/connect/proxytunnel-verbose",
                "proxy/connect/verbose-user",
            ],
        )],
    },
    Known {
        why: "Connections to a proxy are kept for each host.",
        differ: &[(&[Wire], &["proxy/redirect", "proxy/two-hosts"])],
    },
    Known {
        why: "-K with a directory is an error, as it is for a file that is missing; curl takes it for an empty file.",
        differ: &[(&[Exit, Output, Wire], &["config/directory"])],
    },
    Known {
        why: "A quote without an end in a file of -K ends with its line; curl takes the end of the line, too.",
        differ: &[(&[Wire], &["config/escape-last", "config/quoted-open"])],
    },
    Known {
        why: "Nothing is sent before the whole command line is read. curl finds out at the end that the last group has \
              no URL.",
        differ: &[(&[Output, Wire], &["config/next-last"])],
    },
    Known {
        why: "After a next in .curlrc, the arguments belong to the group that it began; curl goes on with the first group, \
              so that the second has no URL.",
        differ: &[(&[Exit, Output], &["config/rc/next-inside"])],
    },
    Known {
        why: "A netrc file whose last word needs a value is an error. curl takes what is there.",
        differ: &[(&[Exit, Output, Wire], &["netrc/cut-short"])],
    },
    Known {
        why: "A password of a netrc file is sent only with its own name. curl sends it with the name in the URL.",
        differ: &[(
            &[Wire],
            &[
                "netrc/url",
                "netrc/url-name-unknown",
                "netrc/url-name-unknown-one",
                "netrc/url-name-without-default",
                "netrc/url-without-default",
            ],
        )],
    },
    Known {
        why: "There is no FTP.",
        differ: &[(&[Exit], &["protocols/redirect-ftp"])],
    },
    Known {
        why: "Sizes of chunks have leading zeros.",
        differ: &[(&[Wire], &["auth/body/put-stdin"])],
    },
    Known {
        why: "Spaces around the `=` of a parameter are read, as RFC 9110 §11.2 asks. curl does not answer such a challenge.",
        differ: &[(&[Output, Wire], &["auth/digest/spaces"])],
    },
    Known {
        why: "A challenge whose quoted string has no end is not answered.",
        differ: &[(&[Output, Wire], &["auth/digest/unended"])],
    },
    Known {
        why: "The first Digest challenge that can be answered is answered (RFC 7616 §3.7). curl looks at the first one alone.",
        differ: &[(&[Output, Wire], &["auth/digest/unknown-first"])],
    },
    Known {
        why: "curl 7.88 takes SHA-256 for SHA-512-256.",
        differ: &[(&[Wire], &["auth/digest/sha-512-256"])],
    },
    Known {
        why: "An `Authorization` of `-H` is all that the server gets. curl sends it beside its own.",
        differ: &[(&[Output, Wire], &["auth/option/own-header"])],
    },
    Known {
        why: "`--max-redirs` counts redirects. curl counts the requests that are sent again with credentials, too.",
        differ: &[(&[Exit, Output, Wire], &["auth/redirect/none-allowed"])],
    },
    Known {
        why: "A nonce is for the server that chose it, with `--location-trusted` too. curl shows it to the next server.",
        differ: &[(&[Wire], &["auth/redirect/trusted"])],
    },
    Known {
        why: "A body that was withheld from a proxy that asks for nothing is sent then. curl never sends it.",
        differ: &[(&[Output, Wire], &["proxy-auth/digest-post-not-asked"])],
    },
    Known {
        why: "A connection on which a proxy has refused a tunnel is not used again, and the peer of this scenario takes no other.",
        differ: &[(&[Exit, Output, Wire], &["proxy-auth/tunnel/kept"])],
    },
    Known {
        why: "Credentials are not shown.",
        differ: &[(
            &[Output],
            &["auth/redirect/not-followed", "url/three-slashes-user"],
        )],
    },
    Known {
        why: "A zone is one of this machine, and is not shown.",
        differ: &[(
            &[Output],
            &[
                "url/zone-bare",
                "url/zone-name",
                "url/zone-no-scheme",
                "url/zone-number",
                "url/zone-user",
            ],
        )],
    },
    Known {
        why: "A zone that is no interface is an error. curl connects without it.",
        differ: &[(&[Exit, Output, Wire], &["url/zone-unknown"])],
    },
    Known {
        why: "That the body needs HTTP/1.1 is found before there is a connection.",
        differ: &[(&[Wire], &["version/1.0-stdin"])],
    },
    Known {
        why: "There is no HTTP/2, and nothing to upgrade to.",
        differ: &[(&[Wire], &["version/2"])],
    },
    Known {
        why: "What is wrong with the options of TLS is found before there is a connection.",
        differ: &[(
            &[Wire],
            &[
                "tls/choice/ciphers-empty",
                "tls/choice/ciphers-unknown",
                "tls/choice/curves-unknown",
                "tls/choice/key-not-der",
                "tls/choice/key-not-pem",
                "tls/choice/key-p12",
                "tls/choice/key-unknown-key-type",
                "tls/choice/key-unknown-type",
                "tls/choice/key-wrong-password",
                "tls/choice/pin-bad-hash",
                "tls/choice/pin-missing",
                "tls/choice/pin-no-hash",
                "tls/choice/proxy-ciphers-unknown",
                "tls/choice/tls13-unknown",
            ],
        )],
    },
    Known {
        why: "A folder of authorities that is not there is an error. curl says that the certificate is not trusted.",
        differ: &[(&[Exit, Wire], &["tls/choice/folder-missing"])],
    },
    Known {
        why: "A certificate that need not be right is not checked: 0.",
        differ: &[(
            &[Output],
            &["tls/choice/pin-insecure", "tls/choice/pin-insecure-other"],
        )],
    },
    Known {
        why: "curl 7.88 does not look at `--proxy-pinnedpubkey`.",
        differ: &[(&[Exit, Output, Wire], &["tls/choice/proxy-pin-other"])],
    },
    Known {
        why: "All of the command line is checked before anything is sent.",
        differ: &[(&[Output, Wire], &["globs/after-good"])],
    },
    Known {
        why: "Percent-encoded bytes have upper-case digits (RFC 3986 §2.1).",
        differ: &[(
            &[Wire],
            &[
                "glob-upload/globoff",
                "query/encoded",
                "query/encoded-file",
                "query/url-query-post",
            ],
        )],
    },
    Known {
        why: "A space of -G is percent-encoded. curl sends it into the URL, and refuses that.",
        differ: &[(&[Exit, Output, Wire], &["query/file", "query/three"])],
    },
    Known {
        why: "A method for which a body is usual says that there is none.",
        differ: &[(&[Wire], &["query/method"])],
    },
    Known {
        why: "-G and --url-query both add to the query. curl forgets the second.",
        differ: &[(&[Wire], &["query/url-query-get"])],
    },
    Known {
        why: "curl adds the header of --etag-compare again for each URL.",
        differ: &[(&[Wire], &["etag/two-urls"])],
    },
    Known {
        why: "A response without an ETag leaves the file of --etag-save as it is. curl empties the file, and fetches everything the next time.",
        differ: &[(&[Files], &["etag/unchanged-no-tag"])],
    },
    Known {
        why: "A file whose name a server chose never replaces a hidden file, which other programs may read.",
        differ: &[(&[Exit, Files], &["header-name/clobber-hidden"])],
    },
    Known {
        why: "A directory is no file to read. curl reads nothing from it, and says nothing.",
        differ: &[(&[Exit], &["local/directory"])],
    },
    Known {
        why: "A file is created by its first byte. curl creates one that it cannot continue.",
        differ: &[(&[Files], &["resume-fresh/offset"])],
    },
    Known {
        why: "416 says that the download is complete. curl says so too, but not with -f if the answer has a Content-Range, and it counts the body that it drops.",
        differ: &[
            (&[Exit], &["resume/past-end/fail"]),
            (
                &[Output],
                &[
                    "resume/past-end/end",
                    "resume/past-end/offset",
                    "resume/past-end/stdout",
                    "resume/past-end-unknown/end",
                    "resume/past-end-unknown/fail",
                    "resume/past-end-unknown/offset",
                    "resume/past-end-unknown/stdout",
                ],
            ),
        ],
    },
    Known {
        why: "What -w writes to %{stderr} is written where --stderr says. curl writes it to its own standard error, and creates the files of earlier --stderr too.",
        differ: &[
            (&[Output], &["messages/dash"]),
            (&[Files], &["messages/file", "messages/last"]),
        ],
    },
    Known {
        why: "With --raw, size_download is the size of what is written. curl counts the data in the chunks.",
        differ: &[(
            &[Output],
            &[
                "raw/chunked/include",
                "raw/chunks/include",
                "raw/cut/include",
                "raw/trailers/include",
            ],
        )],
    },
];
