//! The words of the crawler: one word for one thing. The engine's words are in [`courser::manual::glossary`].
//!
//! # What is searched
//!
//! - **Start**: a URL that the user gave.
//! - **Listing**: a page that names the children of a directory.
//! - **Entry**: one row of a listing: a file or a directory.
//! - **Fetch**: one request of the crawl.
//! - **Probe**: a `HEAD`, or a `GET` of one byte, that learns what a URL is.
//!
//! # One host
//!
//! - **Host crawl**: what is known about one host and what is queued for it.
//! - **Queue**: the URLs that are still to be asked for.
//! - **Retry queue**: the URLs that are to be asked for again later.
//! - **Politeness**: what a host is spared: the pace (a rate, a delay between requests), pauses (after `Retry-After`, or
//!   while the host does not answer), the learned allowance, and robots.txt (RFC 9309).
//! - **Allowance**: how many requests at a time, or in a second, a host has been found to accept.
//! - **Scheduler**: what decides which host may send next.
//!
//! # What comes out
//!
//! - **Finding**: what a crawl reports.
//! - **Unread**: a URL that could not be read, together with the cause.
//! - **Visitor**: what gets the findings.
//!
//! # What is kept
//!
//! - **State**: the file that a search goes on from after it was interrupted.
//! - **Journal**: changes of the crawl that are to be written into the state.
//! - **Snapshot**: the counts of a crawl, kept in the state together with the changes.
//! - **Commit**: the moment at which state and output become durable together.
//!
//! # Jobs
//!
//! - **Job**: a piece of work that a task does for one payload.
//! - **Pool**: the workers of one task, with the queue of its jobs.
//! - **Attempt**: one run of the task for a job. Attempts are counted when they begin.
//! - **Dead letter**: a job that no further attempt can help, kept for a human.
//! - **Ceiling**: a limit of concurrency and rate that pools and crawls share. A **permit** is the right to do one thing
//!   under it.
//! - **Drain**: what a shutdown does with the jobs that wait.
//! - **Schedule**: when a job is to run, by a cron expression. A **firing** is one of its times.
//!
//! # What is watched
//!
//! - **Set**: URLs that belong together. A URL in no set is not asked.
//! - **Due row**: when a URL is to be asked next. Each URL in a set has exactly one.
//! - **Lane**: the kind of a due row: routine, trouble, doubt or held.
//! - **Cycle**: one pass of reconciling over what is in doubt and due.
//! - **Guard**: what keeps an accident from counting: of the own network, of a host, of the number of URLs that are pruned.
//! - **Hold**: the time in which a host's guard is on.
//! - **Canary**: a URL that always answers, to test the own network.
//! - **Change**: a change of a URL's state. Its **cursor** is its place among all changes.
//! - **Notice**: what an operator should know: guards, alarms, and what operators did.
//! - **Fleet**: the services that share a store. Each of them is a **worker**.
//! - **Claim**: a worker takes a host, so that no other one asks the host.
//! - **Lease**: how long a worker has what it claimed without a sign of life. **Tenure**: until when it may ask, by its own clock.
//! - **Fence**: the number of a worker. What comes with a number that is gone is not stored.
//! - **Task**: what one worker does for all, such as reading a set.
//! - **Group commit**: changes of several threads in one transaction.
//! - **Drain**: to begin nothing new, to finish what is under way, and to store it.
//!
//! # Jobs
//!
//! - **Job**: a task in a queue. A job with a **key** is in its queue once.
//! - **Attempt**: one try of a job, counted when it starts.
//! - **Dead letter**: a job or a URL that needs a human.
//! - **Ceiling**: a limit of concurrency and rate that several pools and crawls share.
//! - **Schedule**: when a job runs. **Firing**: one of its times.
