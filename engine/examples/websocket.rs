//! A WebSocket client: `cargo run -p courser --example websocket -- https://a.example/chat [CA.pem]`
//!
//! The engine connects, with TLS and through proxies if need be, and asks for the switch of protocols (RFC 6455 §4.1).
//! What follows is spoken by tungstenite on the connection that the engine gives away. Without a URL, a server on
//! loopback is asked.

use std::error::Error;
use std::net::TcpListener;
use std::thread;

use courser::{Client, Config, Request, Response, TlsRoots, Upgraded};
use tungstenite::handshake::client::generate_key;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let url = match args.next() {
        Some(url) => url,
        None => serve()?,
    };
    let mut config = Config::default();
    if let Some(authority) = args.next() {
        config.host.tls.roots = TlsRoots::None;
        config.host.tls.extra_roots = vec![std::fs::read(authority)?.into()];
    }
    talk(config, &url)
}

/// Sends texts to a server that sends them back.
fn talk(config: Config, url: &str) -> Result<(), Box<dyn Error>> {
    let mut client = Client::new(config)?;
    let mut socket = open(&mut client, url)?;
    for text in ["one", "two", "three"] {
        socket.send(Message::text(text))?;
        println!("{text} -> {}", socket.read()?);
    }
    // Longer than one frame of TLS, and than the buffers of sockets.
    let long = "x".repeat(3_000_000);
    socket.send(Message::text(long.clone()))?;
    if socket.read()?.to_text()? != long {
        return Err("another text came back".into());
    }
    println!("{} characters came back", long.len());
    socket.close(None)?;
    while socket.read().is_ok() {}
    println!("closed");
    Ok(())
}

/// Opens a WebSocket at an `http` or `https` URL.
fn open(client: &mut Client, url: &str) -> Result<WebSocket<Upgraded>, Box<dyn Error>> {
    let key = generate_key();
    let mut request = Request::get(url);
    request
        .add_header("Connection", "Upgrade")
        .add_header("Upgrade", "websocket")
        .add_header("Sec-WebSocket-Version", "13")
        .add_header("Sec-WebSocket-Key", &key);
    let mut response = Response::new();
    client.call(&mut request, &mut response)?;
    let Some(connection) = response.take_upgraded() else {
        return Err(format!("{url}: the server answered {}", response.status()).into());
    };
    let expected = derive_accept_key(key.as_bytes());
    if response.header("Sec-WebSocket-Accept") != Some(expected.as_bytes()) {
        return Err(format!("{url}: the server has not read the request").into());
    }
    Ok(WebSocket::from_raw_socket(connection, Role::Client, None))
}

/// Starts a server that sends each text back, and returns its URL.
fn serve() -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let Ok(mut socket) = tungstenite::accept(stream) else {
                    return;
                };
                while let Ok(message) = socket.read() {
                    if message.is_text() && socket.send(message).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(url)
}
