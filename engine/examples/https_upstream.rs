//! Calls to one https upstream: `cargo run -p courser --example https_upstream -- https://www.example.com`
//!
//! The upstream is a URL. Its name is looked up and its addresses are raced; the certificate must be for the name. The
//! second connection resumes the TLS session of the first. Without a URL, the example asks a server of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use courser::{HostClient, HostConfig, PemOrDer, Response, TlsConfig, TlsRoots, Upstream};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = HostConfig::default();
    let upstream: Upstream = match std::env::args().nth(1) {
        Some(url) => url.parse()?,
        None => {
            // Trusts the certificate of the server below, and finds `api.test` on this computer.
            let (address, certificate) = serve()?;
            config.tls = TlsConfig {
                roots: TlsRoots::None,
                extra_roots: vec![PemOrDer::Bytes(certificate)],
                ..TlsConfig::default()
            };
            config.dns.resolve("api.test", None, [address.ip()]);
            format!("https://api.test:{}", address.port()).parse()?
        }
    };
    println!("{upstream}");
    let mut client = HostClient::new(upstream, config)?;
    let mut response = Response::new();
    for call in 1..=3 {
        let report = client.get("/", &mut response)?;
        let total = report.timings().total;
        print!("call {call}: {} in {total:.1?}", response.status());
        match report.tls() {
            Some(tls) => println!(
                ", {} with {}, resumed: {}",
                tls.version, tls.cipher_suite, tls.resumed
            ),
            None => println!(" on the same connection"),
        }
        if call == 2 {
            client.close_idle();
        }
    }
    Ok(())
}

/// A server for `api.test` on loopback, with its certificate in DER. It answers each request without looking at it.
fn serve() -> Result<(SocketAddr, Vec<u8>), Box<dyn std::error::Error>> {
    let made = rcgen::generate_simple_self_signed(["api.test".to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let config = ServerConfig::builder_with_provider(default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            thread::spawn(move || answer_all(stream, config));
        }
    });
    Ok((address, made.cert.der().to_vec()))
}

fn answer_all(
    stream: TcpStream,
    config: Arc<ServerConfig>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let session = ServerConnection::new(config)?;
    let mut stream = BufReader::new(StreamOwned::new(session, stream));
    let mut line = String::new();
    while stream.read_line(&mut line)? > 0 {
        if line == "\r\n" {
            stream
                .get_mut()
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        }
        line.clear();
    }
    Ok(())
}
