//! A server that answers each request with its target. Some targets have other answers.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use courser::{HostClient, HostConfig, Shared, SharedConfig, Upstream};

/// `/held...` is answered once [`Server::release`] was called, everything else at once. Answers are the target, but for
/// - `.../redirect/REST`: to `http://REST`;
/// - `/bytes/N`: that many bytes of [`pattern`], with a trailer;
/// - `/drip`: `first`, and `second` once the server was released;
/// - `/echo`: the body of the request, and in `X-Came`, how it came;
/// - `/cut`: less than was promised.
pub(crate) struct Server {
    address: SocketAddr,
    scene: Arc<Scene>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Scene {
    released: Mutex<bool>,
    change: Condvar,
    held: AtomicUsize,
    gone: AtomicUsize,
    /// Bytes of bodies written.
    written: AtomicUsize,
    /// Connections by the `Host` of their first request: the number open now, and the highest number at a time.
    hosts: Mutex<HashMap<String, (usize, usize)>>,
    stopped: AtomicBool,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let scene = Arc::<Scene>::default();
        let shared = Arc::clone(&scene);
        let acceptor = thread::spawn(move || {
            thread::scope(|scope| {
                for stream in listener.incoming() {
                    if shared.stopped.load(Ordering::SeqCst) {
                        return;
                    }
                    let (stream, scene) = (stream.unwrap(), &shared);
                    scope.spawn(move || {
                        let mut host = None;
                        let _ = serve(stream, scene, &mut host);
                        if let Some(host) = host {
                            scene.hosts.lock().unwrap().get_mut(&host).unwrap().0 -= 1;
                        }
                        scene.change(|| _ = scene.gone.fetch_add(1, Ordering::SeqCst));
                    });
                }
            });
        });
        Self {
            address,
            scene,
            acceptor: Some(acceptor),
        }
    }

    pub(crate) fn upstream(&self) -> Upstream {
        Upstream::tcp([self.address])
    }

    /// A shared client for this server.
    pub(crate) fn client(&self, config: SharedConfig, host: HostConfig) -> Shared<HostClient> {
        let upstream = self.upstream();
        let build = move |_| HostClient::new(upstream.clone(), host.clone());
        Shared::spawn(config, build).unwrap()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// For each `Host`, the highest number of connections at a time.
    pub(crate) fn most_connections(&self) -> HashMap<String, usize> {
        let hosts = self.scene.hosts.lock().unwrap();
        hosts
            .iter()
            .map(|(host, (_, most))| (host.clone(), *most))
            .collect()
    }

    pub(crate) fn written(&self) -> usize {
        self.scene.written.load(Ordering::SeqCst)
    }

    /// Answers the held requests and all later ones.
    pub(crate) fn release(&self) {
        self.scene
            .change(|| *self.scene.released.lock().unwrap() = true);
    }

    /// Waits until that many requests are, or were, held.
    pub(crate) fn wait_held(&self, count: usize) {
        self.scene
            .wait(|| self.scene.held.load(Ordering::SeqCst) >= count);
    }

    /// Waits until that many connections have ended.
    pub(crate) fn wait_gone(&self, count: usize) {
        self.scene
            .wait(|| self.scene.gone.load(Ordering::SeqCst) >= count);
    }
}

impl Drop for Server {
    /// Waits until all connections have ended: the clients must have ended before.
    fn drop(&mut self) {
        self.release();
        self.scene.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Scene {
    fn change(&self, change: impl FnOnce()) {
        change();
        // A thread that has looked without success is in `wait` once the lock is free.
        drop(self.released.lock().unwrap());
        self.change.notify_all();
    }

    fn wait(&self, done: impl Fn() -> bool) {
        let guard = self.released.lock().unwrap();
        drop(self.change.wait_while(guard, |_| !done()).unwrap());
    }
}

fn serve(mut stream: TcpStream, scene: &Scene, first_host: &mut Option<String>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut target) = (String::new(), String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        target.clear();
        target.push_str(line.split(' ').nth(1).unwrap_or_default());
        let mut length = None;
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().ok();
            }
            if let (Some(host), None) = (line.strip_prefix("Host: "), &first_host) {
                let host = host.trim_end().to_owned();
                let mut hosts = scene.hosts.lock().unwrap();
                let (open, most) = hosts.entry(host.clone()).or_default();
                *open += 1;
                *most = (*most).max(*open);
                *first_host = Some(host);
            }
        }
        if target.starts_with("/held") {
            hold(scene);
        }
        if let Some((_, location)) = target.split_once("/redirect/") {
            let answer = format!(
                "HTTP/1.1 302 Found\r\nLocation: http://{location}\r\nContent-Length: 0\r\n\r\n"
            );
            stream.write_all(answer.as_bytes())?;
        } else if let Some(length) = target.strip_prefix("/bytes/") {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            let length = length.parse().unwrap();
            for at in (0..length).step_by(50_000) {
                let bytes = pattern(at..length.min(at + 50_000));
                write!(stream, "{:x}\r\n", bytes.len())?;
                stream.write_all(&bytes)?;
                stream.write_all(b"\r\n")?;
                scene.written.fetch_add(bytes.len(), Ordering::SeqCst);
            }
            stream.write_all(b"0\r\nX-Sum: 7\r\n\r\n")?;
        } else if target == "/drip" {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nfirst")?;
            hold(scene);
            stream.write_all(b"second")?;
        } else if target == "/echo" {
            let came = if length.is_some() {
                "length"
            } else {
                "chunked"
            };
            let body = read_body(&mut reader, length)?;
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nX-Came: {came}\r\nContent-Length: {length}\r\n\r\n"
            )?;
            stream.write_all(&body)?;
        } else if target == "/cut" {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nfirst")?;
            return Ok(());
        } else {
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{target}",
                target.len()
            );
            stream.write_all(answer.as_bytes())?;
        }
    }
}

/// A body of this length, or in chunks.
fn read_body(reader: &mut impl BufRead, length: Option<usize>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        let size = match length {
            Some(length) => length,
            None => {
                reader.read_line(&mut line)?;
                usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?
            }
        };
        let begin = body.len();
        body.resize(begin + size, 0);
        reader.read_exact(&mut body[begin..])?;
        if length.is_none() {
            reader.read_line(&mut line)?;
        }
        if length.is_some() || size == 0 {
            return Ok(body);
        }
    }
}

fn hold(scene: &Scene) {
    scene.change(|| _ = scene.held.fetch_add(1, Ordering::SeqCst));
    let released = scene.released.lock().unwrap();
    let waited = scene.change.wait_while(released, |released| !*released);
    drop(waited.unwrap());
}

/// A part of an endless sequence without repetition.
pub(crate) fn pattern(range: std::ops::Range<usize>) -> Vec<u8> {
    range.map(|at| (at * 31 + at / 251) as u8).collect()
}
