//! A server that answers each request with its target, unless the target says otherwise.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use courser::{HostClient, HostConfig, Shared, SharedConfig, Upstream};

/// `/held...` is answered once [`Server::release`] was called, everything else at once.
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
                        let _ = serve(stream, scene);
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

    /// A shared client of this server.
    pub(crate) fn client(&self, config: SharedConfig, host: HostConfig) -> Shared<HostClient> {
        let upstream = self.upstream();
        let build = move |_| HostClient::new(upstream.clone(), host.clone());
        Shared::spawn(config, build).unwrap()
    }

    /// Answers the requests that are held, and all later ones.
    pub(crate) fn release(&self) {
        self.scene
            .change(|| *self.scene.released.lock().unwrap() = true);
    }

    /// Waits until so many requests are, or were, held.
    #[allow(dead_code)]
    pub(crate) fn wait_held(&self, count: usize) {
        self.scene
            .wait(|| self.scene.held.load(Ordering::SeqCst) >= count);
    }

    /// Waits until so many connections are over.
    #[allow(dead_code)]
    pub(crate) fn wait_gone(&self, count: usize) {
        self.scene
            .wait(|| self.scene.gone.load(Ordering::SeqCst) >= count);
    }
}

impl Drop for Server {
    /// Waits for all connections to end: the clients have to be gone before.
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
        // Whoever has looked without success is in `wait` once the lock is free.
        drop(self.released.lock().unwrap());
        self.change.notify_all();
    }

    fn wait(&self, done: impl Fn() -> bool) {
        let guard = self.released.lock().unwrap();
        drop(self.change.wait_while(guard, |_| !done()).unwrap());
    }
}

fn serve(mut stream: TcpStream, scene: &Scene) -> std::io::Result<()> {
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
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
        }
        if target.starts_with("/held") {
            scene.change(|| _ = scene.held.fetch_add(1, Ordering::SeqCst));
            let released = scene.released.lock().unwrap();
            drop(
                scene
                    .change
                    .wait_while(released, |released| !*released)
                    .unwrap(),
            );
        }
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{target}",
            target.len()
        );
        stream.write_all(answer.as_bytes())?;
    }
}
