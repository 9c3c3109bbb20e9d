//! More options of `crawler-cli get` about TLS: with servers, and the same with https proxies.

use super::Args;
use super::values::set;
use crate::cli::option::{self, any, file};

type Opt = option::Opt<Args>;

/// With servers.
pub(super) const SERVERS: &[Opt] = &[
    Opt::bytes(&["--capath"], &[file("<folder>")], |args, v| {
        set(&mut args.group.tls.roots_folder, v)
    })
    .short("Trust the authorities in this folder too")
    .long("Trust the authorities in the files of this folder too: those with names of c_rehash, or else all."),
    Opt::bytes(&["--cert-type"], &[any("<type>")], |args, v| {
        set(&mut args.group.tls.certificate_type, v)
    })
    .short("The type of --cert: PEM or DER; P12 is not read"),
    Opt::bytes(&["--key-type"], &[any("<type>")], |args, v| {
        set(&mut args.group.tls.key_type, v)
    })
    .short("The type of --key: PEM or DER"),
    Opt::bytes(&["--pass"], &[any("<password>")], |args, v| {
        set(&mut args.group.tls.password, v)
    })
    .short("The password of the private key of --cert"),
    Opt::bytes(&["--pinnedpubkey"], &[file("<file/hashes>")], |args, v| {
        set(&mut args.group.tls.pinned, v)
    })
    .short("Accept only this public key of the server")
    .long("Accept only this public key of the server: a file in PEM or DER, or hashes like sha256//BASE64;sha256//BASE64. With --insecure, too. Otherwise the exit status is 90."),
    Opt::bytes(&["--ciphers"], &[any("<list>")], |args, v| {
        set(&mut args.group.tls.ciphers, v)
    })
    .short("Offer these cipher suites of TLS 1.2")
    .long("Offer these cipher suites of TLS 1.2, by the names of OpenSSL or IANA, with colons between them. DEFAULT is all; a suite after ! is left out."),
    Opt::bytes(&["--tls13-ciphers"], &[any("<list>")], |args, v| {
        set(&mut args.group.tls.ciphers13, v)
    })
    .short("Offer these cipher suites of TLS 1.3"),
    Opt::bytes(&["--curves"], &[any("<list>")], |args, v| {
        set(&mut args.group.tls.curves, v)
    })
    .short("Offer these groups: X25519, P-256, P-384"),
    Opt::flag(&["-1", "--tlsv1"], |args| args.group.tls.min = None)
        .short("Use TLS 1.2 or later: older versions are not there"),
    Opt::flag(&["--tlsv1.0"], |args| args.group.tls.min = None)
        .short("Use TLS 1.2 or later: older versions are not there"),
    Opt::flag(&["--tlsv1.1"], |args| args.group.tls.min = None)
        .short("Use TLS 1.2 or later: older versions are not there"),
    Opt::switch(&["--alpn"], |args, on| args.group.tls.no_alpn = !on)
        .short("Offer http/1.1 in the handshake; this is the default"),
    Opt::switch(&["--sessionid"], |args, on| {
        args.group.tls.no_resumption = !on
    })
    .short("Use sessions of TLS again; this is the default"),
    Opt::switch(&["--ssl-no-revoke"], |_, _| ())
        .short("No effect: revocation is checked with --crlfile alone"),
];

/// With proxies.
pub(super) const PROXIES: &[Opt] = &[
    Opt::bytes(&["--proxy-capath"], &[file("<folder>")], |args, v| {
        set(&mut args.group.proxy.tls.roots_folder, v)
    })
    .short("Trust the authorities in this folder too")
    .long("Trust the authorities in the files of this folder too: those with names of c_rehash, or else all."),
    Opt::bytes(&["--proxy-cert-type"], &[any("<type>")], |args, v| {
        set(&mut args.group.proxy.tls.certificate_type, v)
    })
    .short("The type of --proxy-cert: PEM or DER; P12 is not read"),
    Opt::bytes(&["--proxy-key-type"], &[any("<type>")], |args, v| {
        set(&mut args.group.proxy.tls.key_type, v)
    })
    .short("The type of --proxy-key: PEM or DER"),
    Opt::bytes(&["--proxy-pass"], &[any("<password>")], |args, v| {
        set(&mut args.group.proxy.tls.password, v)
    })
    .short("The password of the private key of --proxy-cert"),
    Opt::bytes(&["--proxy-pinnedpubkey"], &[file("<file/hashes>")], |args, v| {
        set(&mut args.group.proxy.tls.pinned, v)
    })
    .short("Accept only this public key of the proxy")
    .long("Accept only this public key of the proxy: a file in PEM or DER, or hashes like sha256//BASE64;sha256//BASE64. With --proxy-insecure, too. Otherwise the exit status is 90."),
    Opt::bytes(&["--proxy-ciphers"], &[any("<list>")], |args, v| {
        set(&mut args.group.proxy.tls.ciphers, v)
    })
    .short("Offer these cipher suites of TLS 1.2")
    .long("Offer these cipher suites of TLS 1.2, by the names of OpenSSL or IANA, with colons between them. DEFAULT is all; a suite after ! is left out."),
    Opt::bytes(&["--proxy-tls13-ciphers"], &[any("<list>")], |args, v| {
        set(&mut args.group.proxy.tls.ciphers13, v)
    })
    .short("Offer these cipher suites of TLS 1.3"),
    Opt::flag(&["--proxy-tlsv1"], |args| args.group.proxy.tls.min = None)
        .short("Use TLS 1.2 or later: older versions are not there"),
];
