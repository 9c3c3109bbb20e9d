//! What requests are answered with: the store, read by a connection of its own; the service, asked at most once a second;
//! and the commands of operators.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use url::Url;

use super::access::Access;
use super::answer::Refused;
use super::once::Once;
use super::under_way::{Keys, UnderWay};
use crate::store::{StoreError, Writer};
use crate::watch::config::Current;
use crate::watch::control::{
    Command, HostLive, LiveStatus, Operator, Reply, Submission, Submitted,
};
use crate::watch::figures::Figures;
use crate::watch::hands::{Live, Reader};
use crate::watch::metrics::{Metrics, Sources};
use crate::watch::series::Series;
use crate::watch::vitals::Vitals;

/// All that requests are answered with. There are three ways to it: to read the store, to have a command performed, and
/// to ask the service how it is. Each takes one request at a time, so that requests take no more than three threads.
#[derive(Debug)]
pub struct Site {
    pub(super) metrics: Metrics,
    /// What is counted.
    pub figures: Arc<Figures>,
    /// How that went.
    pub series: Arc<Series>,
    /// The configuration.
    pub current: Arc<Current>,
    operator: Operator<Writer>,
    reader: Arc<Mutex<Reader>>,
    /// Places for commands that wait, and for the one that is performed.
    places: Arc<Semaphore>,
    /// Places for large bodies.
    large: Arc<Semaphore>,
    pub(super) access: Access,
    /// The forms of pages.
    pub(in crate::watch) once: Arc<Once>,
    performing: Arc<Mutex<()>>,
    /// The keys of requests that are under way.
    under_way: Arc<Keys>,
    /// What the service said last, and when.
    live: Mutex<Option<(Instant, LiveStatus)>>,
}

/// Why the site has no answer.
#[derive(Debug)]
pub enum Trouble {
    /// The store cannot be read.
    Store(StoreError),
    /// Too many commands wait already.
    Busy,
    /// The service ends, or has failed.
    Ended,
}

impl Site {
    /// Answers with these. `reader` reads the store that the writer of the operator has.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(
        operator: Operator<Writer>,
        sources: Sources,
        reader: Reader,
        current: Arc<Current>,
    ) -> io::Result<Self> {
        Ok(Self {
            figures: Arc::clone(&sources.checks),
            series: Arc::default(),
            metrics: Metrics::new(sources),
            current,
            reader: Arc::new(Mutex::new(reader)),
            places: Arc::new(Semaphore::new(1 + MOST_WAITING)),
            large: Arc::new(Semaphore::new(MOST_LARGE)),
            access: Access::new(Arc::clone(&operator.tokens))?,
            once: Arc::default(),
            performing: Arc::default(),
            under_way: Arc::default(),
            live: Mutex::default(),
            operator,
        })
    }

    /// A place for a large body, until this is dropped.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn large(&self) -> Result<OwnedSemaphorePermit, Refused> {
        let place = Arc::clone(&self.large).try_acquire_owned();
        place.map_err(|_| {
            let why = "other large bodies are being read";
            Refused::new(StatusCode::TOO_MANY_REQUESTS, why)
        })
    }

    /// Whether almost everything needs a token.
    pub(in crate::watch) fn has_tokens(&self) -> bool {
        self.access.has_tokens()
    }

    /// How the service is.
    pub fn vitals(&self) -> &Vitals {
        &self.operator.vitals
    }

    /// Reads the store on another thread. All that `read` reads is of the same moment.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn read<T, F>(&self, read: F) -> Result<T, Trouble>
    where
        F: FnOnce(&mut Reader) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        let mut reader = Arc::clone(&self.reader).lock_owned().await;
        let read = spawn_blocking(move || reader.at_once(read));
        let read = read.await.map_err(|_| Trouble::Ended)?;
        read.map_err(Trouble::Store)
    }

    /// Has a command performed, as the socket does; `who` is named in notices. A command that was begun is performed even
    /// if nobody waits for the reply.
    ///
    /// # Errors
    /// Too many commands wait.
    pub async fn perform(&self, who: String, command: Command) -> Result<Reply, Trouble> {
        self.operate(move |operator| operator.perform(command, &who))
            .await
    }

    /// Has a program's URLs added, as [`perform`](Self::perform) has a command performed.
    ///
    /// # Errors
    /// Too many commands wait, or the store cannot be written.
    pub async fn submit(&self, who: String, submission: Submission) -> Result<Submitted, Trouble> {
        // Held until all is stored, whether or not the client waits for it.
        let under_way = match &submission.key {
            Some(key) => match UnderWay::begin(&self.under_way, key.stored()) {
                Some(under_way) => Some(under_way),
                None => return Ok(Submitted::UnderWay),
            },
            None => None,
        };
        let submitted = self.operate(move |operator| {
            let submitted = operator.submit(submission, &who);
            drop(under_way);
            submitted
        });
        submitted.await?.map_err(Trouble::Store)
    }

    /// Lets the operator of the service do something on another thread, after all who wait already.
    async fn operate<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Operator<Writer>) -> T + Send + 'static,
    ) -> Result<T, Trouble> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| Trouble::Busy)?;
        let turn = Arc::clone(&self.performing).lock_owned().await;
        let operator = self.operator.clone();
        let performed = spawn_blocking(move || {
            let result = run(&operator);
            drop((turn, place));
            result
        });
        performed.await.map_err(|_| Trouble::Ended)
    }

    /// What the service says of itself. However many ask, the service is asked once a second.
    pub async fn live(&self) -> Live {
        let mut live = self.live.lock().await;
        if let Some((at, status)) = &*live
            && at.elapsed() < NEWS
        {
            return Live::Running(Box::new(status.clone()));
        }
        let operator = self.operator.clone();
        match spawn_blocking(move || operator.status(None)).await {
            Ok(status) => {
                *live = Some((Instant::now(), status.clone()));
                Live::Running(Box::new(status))
            }
            Err(_) => Live::Silent("it ends".to_owned()),
        }
    }

    /// What the service says of these hosts, given by the URLs of their roots; nothing if the service does not answer.
    pub async fn hosts(&self, roots: Vec<Url>) -> Vec<HostLive> {
        let live = self.live().await;
        if live.core().is_none() {
            return Vec::new();
        }
        // One question at a time, as those after the service as a whole.
        let turn = self.live.lock().await;
        let operator = self.operator.clone();
        let hosts = spawn_blocking(move || operator.hosts(roots)).await;
        drop(turn);
        hosts.ok().flatten().unwrap_or_default()
    }
}

/// How many commands wait while one is performed.
const MOST_WAITING: usize = 8;
/// How many large bodies are read at a time.
const MOST_LARGE: usize = 2;
/// For how long the service is not asked again.
const NEWS: Duration = Duration::from_secs(1);
