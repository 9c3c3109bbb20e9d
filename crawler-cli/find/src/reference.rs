//! Finds out the modification times of the URLs in `-newer`. Asks the servers once, before the search begins, because
//! entries cannot be tested without them.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use courser::proto::is_redirect;
use courser::{Client, Codings, Request, Response};
use url::Url;

use super::cause::Cause;
use super::expr::{ActError, Expression, Reference};
use super::host_crawl::Reply;
use super::policy::Policy;
use crawl::failure::FailureScope;
use crawl::identity::Identities;
use crawl::politeness::Politeness;
use crawl::redirect::Chain;
use crawl::retry::{Decision, Failed, Others, decide};
use crawl::retry_queue::Attempts;
use crawl::stats::Class;
use crawl::transfer::Transfer;
use plain::origin::root_of;

/// Finds out the times of all references of `-newer`.
///
/// # Errors
/// The error of the first reference whose time cannot be found out.
pub(super) fn resolve(
    expression: &mut Expression,
    transfer: &Transfer,
    policy: &Policy,
) -> Result<(), ActError> {
    expression.resolve_files()?;
    let given = expression.references().iter();
    let given = given.filter_map(|reference| match reference {
        Reference::Url(url) => Some(url.clone()),
        _ => None,
    });
    let given: Vec<Url> = given.collect();
    let mut client = None;
    for index in 0..expression.references().len() {
        let Reference::Url(url) = &expression.references()[index] else {
            continue;
        };
        let url = url.clone();
        let failed = |reason| ActError::Page(url.clone(), reason);
        let client = match &mut client {
            Some(client) => client,
            None => {
                let opened = transfer.client(&given);
                client.insert(opened.map_err(|error| failed(Box::new(error)))?)
            }
        };
        let seconds = last_modified(client, url.clone(), transfer, policy).map_err(failed)?;
        expression.resolve(index, seconds);
    }
    Ok(())
}

type Reason = Box<dyn Error + Send + Sync>;

/// Asks the server, with the retries and redirects that the policy allows.
fn last_modified(
    client: &mut Client,
    url: Url,
    transfer: &Transfer,
    policy: &Policy,
) -> Result<i64, Reason> {
    let mut question = Question {
        chain: Chain::new(&url),
        most_redirects: policy.limits.redirects,
        method: Method::Head,
    };
    let mut host = Politeness::new(&policy.host);
    let mut attempts = Attempts::default();
    loop {
        attempts.handle_sent(Instant::now());
        let (failed, reason) = match question.ask(client, &transfer.identities) {
            Answer::Changed(seconds) => return Ok(seconds),
            Answer::Never(reason) => return Err(reason),
            Answer::Otherwise => {
                // Perhaps of another host.
                host = Politeness::new(&policy.host);
                attempts = Attempts::default();
                continue;
            }
            Answer::Failed(failed, reason) => (failed, reason),
        };
        let now = Instant::now();
        let due = match decide(now, failed, &mut attempts, Others::default(), &mut host) {
            Decision::RetryAt(due) => host.held_until(now).max(Some(due)),
            Decision::GiveUp(why) | Decision::GiveUpHost(why) => {
                return Err(Box::new(reason.because(why, host.retry_policy())));
            }
        };
        thread::sleep(due.map_or(Duration::ZERO, |due| due - now));
    }
}

struct Question {
    chain: Chain,
    most_redirects: u32,
    method: Method,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Method {
    Head,
    /// `GET` of the first byte, for servers that do not support `HEAD`.
    First,
}

enum Answer {
    /// The modification time, in seconds since 1970.
    Changed(i64),
    /// Another request may answer: the question has become that one.
    Otherwise,
    /// The request failed, but may succeed later.
    Failed(Failed, Cause),
    Never(Reason),
}

impl Question {
    fn ask(&mut self, client: &mut Client, identities: &Identities) -> Answer {
        let url = self.chain.url();
        let mut request = Request::get(url.as_str());
        request.decode(Codings::none());
        match self.method {
            Method::Head => {
                request.set_method("HEAD");
            }
            Method::First => {
                request.add_header("Range", "bytes=0-0");
            }
        }
        identities.of(&root_of(url)).write(&mut request);
        let mut response = Response::new();
        if let Err(error) = client.call(&mut request, &mut response) {
            let failed = Failed::new(Class::of_error(&error), FailureScope::of(&error));
            return Answer::Failed(failed, Cause::Transfer(Box::new(error)));
        }
        let failed = |status| Box::new(Cause::Status(status));
        match response.status() {
            200..=299 => match Reply::of(&response).modified() {
                Some(seconds) => Answer::Changed(seconds),
                None => Answer::Never("the server sends no Last-Modified".into()),
            },
            status if is_redirect(status) => {
                let location = response.location().ok().flatten();
                let followed = (self.chain).follow(status, location, self.most_redirects, true);
                match followed {
                    Ok(()) => Answer::Otherwise,
                    Err(why) => Answer::Never(Box::new(Cause::NotFollowed(why))),
                }
            }
            status @ (408 | 410 | 429 | 500..) => {
                let date = response.header("Date");
                let failed = Failed::of_status(status, response.header("Retry-After"), date);
                Answer::Failed(failed, Cause::Status(status))
            }
            status if self.method == Method::First => Answer::Never(failed(status)),
            // A server that refuses HEAD may answer GET.
            _ => {
                self.method = Method::First;
                Answer::Otherwise
            }
        }
    }
}
