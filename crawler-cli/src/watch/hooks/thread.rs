//! The thread of a receiver: waits until the next turn, takes orders, and keeps the connection open while messages follow
//! one another. What a turn does is the part of `worker`.

use std::time::Duration;

use crossbeam_channel::{Receiver as Inbox, RecvTimeoutError, Sender};
use jiff::Timestamp;

use super::collect::Wishes;
use super::send::{Connection, Failed, Sent, Target};
use super::worker::{Turn, Worker};
use crate::check::life::time::{after, between};
use crate::jobs::Cancel;

/// What the thread of a receiver is told.
#[derive(Debug)]
pub(super) enum Order {
    /// Something has happened.
    Look,
    /// The configuration has changed.
    Settings(Box<(Target, Wishes)>),
    /// An operator wants the receiver to go on, without any wait.
    Resume,
    /// An operator tries the receiver; where the answer goes.
    Test(Sender<Result<String, String>>),
    /// The service ends, or the receiver is forgotten.
    End,
}

/// Serves a receiver until its thread is told to end.
pub(super) fn serve(mut worker: Worker, inbox: &Inbox<Order>) {
    let mut connection: Option<Connection> = None;
    // Why the store failed last.
    let mut said: Option<String> = None;
    loop {
        let (target, cancel) = (worker.target().clone(), worker.cancel().clone());
        let turn = worker.turn(Timestamp::now(), &mut |id, body| {
            send_on(&mut connection, &target, id, body, &cancel)
        });
        let failure = turn.as_ref().err().map(ToString::to_string);
        if let Some(why) = failure.as_ref().filter(|_| failure != said) {
            tracing::error!("webhook {}: {why}", worker.name());
        }
        said = failure;
        let again = Turn::At(after(Timestamp::now(), STORE_PATIENCE));
        let turn = turn.unwrap_or(again);
        let wait = match turn {
            Turn::Now => Duration::ZERO,
            Turn::At(at) => between(Timestamp::now(), at).min(LONGEST_WAIT),
        };
        if !wait.is_zero() {
            // Nothing is kept open for a receiver that is not asked.
            connection = None;
        }
        let order = match inbox.recv_timeout(wait) {
            Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => Order::Look,
        };
        match order {
            Order::Settings(settings) => {
                worker.set_settings(*settings);
                connection = None;
            }
            Order::Resume => worker.resume(),
            Order::Test(answer) => {
                let sent = worker
                    .test(&mut |id, body| send_on(&mut connection, &target, id, body, &cancel));
                // The operator may have gone.
                let _ = answer.try_send(sent);
            }
            Order::Look | Order::End => {}
        }
        if worker.cancel().is_set() {
            return;
        }
    }
}

fn send_on(
    connection: &mut Option<Connection>,
    target: &Target,
    id: &str,
    body: &[u8],
    cancel: &Cancel,
) -> Sent {
    let connection = match connection {
        Some(connection) => connection,
        None => match Connection::new(target.clone()) {
            Ok(new) => connection.insert(new),
            Err(error) => {
                return Sent::Failed(Failed {
                    why: error.to_string(),
                    ..Failed::default()
                });
            }
        },
    };
    connection.send(id, body, Timestamp::now(), cancel)
}

/// How long a store that fails is left alone.
const STORE_PATIENCE: Duration = Duration::from_secs(5);
/// The longest wait without an order.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
