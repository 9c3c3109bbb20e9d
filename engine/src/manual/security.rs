//! Security: who may send what, which limit or rule answers it, and which test shows that.
//!
//! Every byte that a server, a proxy or a name server sends is untrusted. So are URLs and field values that a program has
//! from somewhere else. What the program configures is trusted: limits, authorities, proxies, hooks. The names in the last
//! column are those of tests; a test of the repository checks that each of them is there.
//!
//! # Framing: one message taken for another
//! The classes of faults are those for which other clients have had advisories (CVE).
//!
//! | what a peer sends | the answer | shown by |
//! |---|---|---|
//! | two lengths, a length that is none, a length beside chunks (Node, h11, pingora) | an error; the connection is closed | `requirements_of_the_rfcs` |
//! | chunks with a bare LF, spaces, signs or overflow (Go CVE-2025-22871, h11 CVE-2025-43859) | an error | `sizes_and_extensions` |
//! | long chunk extensions, padded sizes (Go CVE-2023-39326) | the overhead has a limit | `limits`, `one_byte_chunks_pass_and_padded_chunks_are_refused` |
//! | bytes on an idle connection, as an answer to the next request (undici CVE-2026-6733) | the connection is dropped | `bytes_that_came_after_the_last_poll_do_not_answer_the_next_call` |
//! | a body after HEAD, 204 or 304 | the connection is not used again | `requirements_of_the_rfcs`, `a_body_behind_a_pipelined_head_is_nobodys` |
//! | a 101 that nobody has asked for (Envoy CVE-2024-23326) | an error | `requirements_of_the_rfcs` |
//! | a final answer to `Expect: 100-continue` (Go CVE-2024-24791) | the body is not sent, and the connection not used again | `a_100_releases_the_body_and_a_final_status_does_not` |
//! | an end in the middle | an error, at every byte | `an_end_at_every_byte_is_truncation` |
//!
//! # Requests that say more than was meant
//!
//! | what a program passes on | the answer | shown by |
//! |---|---|---|
//! | CR, LF or NUL in a method, target, name or value (undici CVE-2026-1527) | an error; nothing is sent | `invalid_requests_name_the_part` |
//! | URLs that parsers read differently: dots, brackets, zones, user information (curl CVE-2022-27780) | one parser for the check and for the connection | `invalid_urls_are_refused` |
//!
//! # Secrets that go to the wrong place
//!
//! | what a server does | the answer | shown by |
//! |---|---|---|
//! | redirects to another scheme, host or port (curl CVE-2022-27774, Go CVE-2024-45336) | credentials and cookies stay behind, also on the way back | `credentials_stay_with_their_origin`, `origins`, `cookies_of_one_host_do_not_follow_to_another` |
//! | redirects a call whose program adds credentials by a hook | the hook is asked for each hop, and what it adds is not carried on | `a_redirect_carries_no_header_of_the_hook_on` |
//! | redirects to a server that a hook trusts with the credentials | that server gets the caller's alone: none that the redirect names, and none that are for a proxy | `trust_is_no_more_than_that` |
//! | answers 401 without end | the hook is asked once for each URL | `status_401_is_asked_about_once` |
//! | redirects past a proxy (requests CVE-2023-32681) | `Proxy-Authorization` reaches no server | `proxy_authorization_reaches_no_server_by_any_way` |
//! | redirects to another origin, which asks for a certificate | the certificate stays behind, and sessions that began with it | `a_client_certificate_stays_with_its_origin` |
//! | asks for a certificate at the proxy | a proxy sees neither the server's name nor the certificate | `a_proxy_is_shown_neither_the_servers_name_nor_our_certificate` |
//! | fails, so that the error is logged | no password in messages and `Debug` | `debug_shows_neither_user_nor_password`, `no_password_is_shown` |
//! | a cookie for other hosts, or very many cookies | the rules of RFC 6265, and limits | `which_cookie_goes_where`, `nothing_grows_without_end` |
//! | a kept connection with other settings (curl CVE-2022-27782) | origin, TLS identity, proxy and address policy together are the key of a pool | `calls_with_an_address_policy_of_their_own_share_no_connection_with_others` |
//!
//! # Addresses that are nobody's business
//!
//! | what a server or a name server does | the answer | shown by |
//! |---|---|---|
//! | redirects to an address of the own network, or gives a name such an address | [`AddressPolicy`](crate::AddressPolicy) checks the address that is connected to, on each hop | `redirects_lead_nowhere_private` |
//! | a name server that does not answer | other names go on | `a_zone_takes_no_more_slots_than_are_free` |
//! | redirects in circles | a limit | `only_as_many_as_allowed` |
//!
//! # Time, memory and work without end
//!
//! | what a peer sends | the answer | shown by |
//! |---|---|---|
//! | one byte now and then | one deadline over all, whatever comes | `by_default_a_streamed_body_may_take_longer_than_the_total_timeout` |
//! | a promise of a large body | memory grows with what has come | `a_promised_length_costs_no_memory` |
//! | interim responses or header lines without end (curl CVE-2023-38039) | limits over all heads | `limits`, `interim_responses_are_limited` |
//! | a body that decodes to very much, many codings (curl CVE-2022-32206, urllib3 CVE-2025-66418) | limits on bytes, ratio, windows and codings | `the_data_between_two_codings_has_its_ratio`, `five_codings_and_no_more`, `a_zstd_window_above_the_limit_is_refused` |
//! | answers faster than the program reads | the connection is read no further | `an_unread_body_stops_its_server_and_no_other_call` |
//! | a request that was executed, and a closed connection | POST is never sent twice by itself | `only_what_is_safe_or_asked_for` |
//!
//! # TLS
//!
//! | what a peer does | the answer | shown by |
//! |---|---|---|
//! | a certificate that is expired, for another name, revoked, or of an unknown authority | an error of its own for each | `each_bad_certificate_has_its_own_fault`, `revocation_lists_are_applied` |
//! | ends a body without `close_notify` | truncation, if nothing else frames the body | `the_end_is_clean_only_with_close_notify` |
//! | renegotiates, or updates keys without end | refused; limited | `renegotiation_is_refused`, `records_without_content_are_limited` |
//! | changes a record | the session ends | `a_tampered_record_ends_the_session_after_the_data_before_it` |
//! | speaks another protocol (ALPN) | an error | `a_server_may_ignore_alpn_but_not_choose_another_protocol` |
//!
//! Cryptography, and the state machine of TLS, are rustls's. The engine has no `unsafe` code.
//!
//! # What is not defended
//! - A program that turns a check off: `insecure`, an own verifier, no limits.
//! - The list of public suffixes is not built in: without one, a cookie jar refuses cookies for single labels only.
//! - Names that only a proxy looks up: an address policy can refuse them, and cannot check them.
//! - A connection that was [given away](crate::Upgraded) has no limits but those of its new owner.
//!
//! # Reporting
//! There is no public tracker yet. Tell whoever gave you the source, in private, with a peer that shows the fault: a
//! script, or the bytes. A fault that is mended comes with its test and with a row on this page.
