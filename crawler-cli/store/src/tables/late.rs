//! Judgements as lines of JSON, for the time in which the store cannot be written.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::codec;
use super::failure::Failure;
use crate::{
    Change, Control, DueId, HostFacts, HostId, Judgement, Lane, Late, NewDeadLetter, UrlId,
};
use verdict::Answer;

#[derive(Deserialize, Serialize)]
struct Line {
    worker: i64,
    judgements: Vec<Judged>,
    facts: Vec<(i64, Facts)>,
}

#[derive(Deserialize, Serialize)]
struct Judged {
    host: i64,
    lane: u8,
    due: i64,
    url: i64,
    answer: Option<Answered>,
    life: Vec<u8>,
    changes: Vec<Changed>,
    next: Option<(u8, i64)>,
    letter: Option<Letter>,
}

#[derive(Deserialize, Serialize)]
struct Answered {
    class: String,
    cause: Option<String>,
    detail: Option<String>,
    status: Option<u16>,
    method: Option<String>,
    moved_to: Option<String>,
    final_url: Option<String>,
    redirects: Option<String>,
    attempts: u32,
    latency_us: Option<u64>,
    address: Option<Vec<u8>>,
    checked_at: Option<i64>,
}

#[derive(Deserialize, Serialize)]
struct Changed {
    at: i64,
    from: String,
    to: String,
    status: Option<u16>,
    why: String,
}

#[derive(Deserialize, Serialize)]
struct Letter {
    reason: String,
    attempts: u32,
    last: String,
    first_at: i64,
    last_at: i64,
}

#[derive(Deserialize, Serialize)]
struct Facts {
    no_head_until: Option<i64>,
    head_lies_until: Option<i64>,
    answered_at: Option<i64>,
    control: Option<(i64, Option<u16>)>,
    episodes: Option<String>,
}

impl Late {
    /// One line of JSON, without its end.
    pub(crate) fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        let facts = self.facts.iter();
        serde_json::to_vec(&Line {
            worker: self.worker,
            judgements: self.judgements.iter().map(Judged::from).collect(),
            facts: facts.map(|(host, facts)| (host.0, facts.into())).collect(),
        })
    }

    /// What [`to_line`](Self::to_line) wrote.
    pub(crate) fn from_line(line: &[u8]) -> Result<Self, String> {
        let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let read = || {
            let judgements = line.judgements.into_iter().map(Judgement::try_from);
            let facts = line.facts.into_iter();
            Ok(Self {
                worker: line.worker,
                judgements: judgements.collect::<Result<_, Failure>>()?,
                facts: facts
                    .map(|(host, facts)| Ok((HostId(host), facts.try_into()?)))
                    .collect::<Result<_, Failure>>()?,
            })
        };
        read().map_err(|failure: Failure| failure.at(std::path::Path::new("")).to_string())
    }
}

impl From<&Judgement> for Judged {
    fn from(judgement: &Judgement) -> Self {
        let id = judgement.id;
        let next = judgement.next;
        Self {
            host: id.host.0,
            lane: id.lane.code(),
            due: id.due.as_millisecond(),
            url: id.url.0,
            answer: judgement.answer.as_ref().map(Answered::from),
            life: judgement.life.to_bytes(),
            changes: judgement.changes.iter().map(Changed::from).collect(),
            next: next.map(|(lane, at)| (lane.code(), at.as_millisecond())),
            letter: judgement.dead_letter.as_ref().map(Letter::from),
        }
    }
}

impl TryFrom<Judged> for Judgement {
    type Error = Failure;

    fn try_from(judged: Judged) -> Result<Self, Failure> {
        let next = judged.next;
        let next = next.map(|(code, at)| Ok::<_, Failure>((lane(code)?, codec::time(at)?)));
        Ok(Self {
            id: DueId {
                host: HostId(judged.host),
                lane: lane(judged.lane)?,
                due: codec::time(judged.due)?,
                url: UrlId(judged.url),
            },
            answer: judged.answer.map(Answer::try_from).transpose()?,
            life: codec::life(&judged.life)?,
            changes: judged
                .changes
                .into_iter()
                .map(Change::try_from)
                .collect::<Result<_, _>>()?,
            next: next.transpose()?,
            dead_letter: judged.letter.map(NewDeadLetter::try_from).transpose()?,
        })
    }
}

fn lane(code: u8) -> Result<Lane, Failure> {
    Lane::from_code(code).ok_or_else(|| Failure::Damaged(format!("lane {code}")))
}

impl From<&Answer> for Answered {
    fn from(answer: &Answer) -> Self {
        let cause = answer.verdict.cause();
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            class: answer.verdict.class().name().to_owned(),
            cause: cause.map(|cause| codec::cause_name(cause).into_owned()),
            detail: answer.detail.clone(),
            status: answer.status,
            method: answer.method.map(str::to_owned),
            moved_to: answer.moved_to.clone(),
            final_url: answer.final_url.clone(),
            redirects: codec::redirects_text(&answer.redirects),
            attempts: answer.attempts,
            latency_us: answer.latency.map(micros),
            address: answer.address.map(codec::address_bytes),
            checked_at: answer.checked_at.map(|at| at.as_millisecond()),
        }
    }
}

impl TryFrom<Answered> for Answer {
    type Error = Failure;

    fn try_from(answered: Answered) -> Result<Self, Failure> {
        let address = answered.address.as_deref();
        Ok(Self {
            verdict: codec::verdict(&answered.class, answered.cause.as_deref())?,
            detail: answered.detail,
            status: answered.status,
            method: answered.method.as_deref().and_then(codec::method),
            moved_to: answered.moved_to,
            final_url: answered.final_url,
            redirects: codec::redirects(answered.redirects.as_deref())?,
            attempts: answered.attempts,
            latency: answered.latency_us.map(Duration::from_micros),
            address: address.map(codec::address).transpose()?,
            checked_at: codec::optional_time(answered.checked_at)?,
        })
    }
}

impl From<&Change> for Changed {
    fn from(change: &Change) -> Self {
        Self {
            at: change.at.as_millisecond(),
            from: change.from.name().to_owned(),
            to: change.to.name().to_owned(),
            status: change.status,
            why: change.why.clone(),
        }
    }
}

impl TryFrom<Changed> for Change {
    type Error = Failure;

    fn try_from(changed: Changed) -> Result<Self, Failure> {
        Ok(Self {
            at: codec::time(changed.at)?,
            from: codec::state(&changed.from)?,
            to: codec::state(&changed.to)?,
            status: changed.status,
            why: changed.why,
        })
    }
}

impl From<&NewDeadLetter> for Letter {
    fn from(letter: &NewDeadLetter) -> Self {
        Self {
            reason: letter.reason.clone(),
            attempts: letter.attempts,
            last: letter.last.clone(),
            first_at: letter.first_at.as_millisecond(),
            last_at: letter.last_at.as_millisecond(),
        }
    }
}

impl TryFrom<Letter> for NewDeadLetter {
    type Error = Failure;

    fn try_from(letter: Letter) -> Result<Self, Failure> {
        Ok(Self {
            reason: letter.reason,
            attempts: letter.attempts,
            last: letter.last,
            first_at: codec::time(letter.first_at)?,
            last_at: codec::time(letter.last_at)?,
        })
    }
}

impl From<&HostFacts> for Facts {
    fn from(facts: &HostFacts) -> Self {
        let millis = |at: Option<jiff::Timestamp>| at.map(|at| at.as_millisecond());
        let control = facts.control;
        Self {
            no_head_until: millis(facts.no_head_until),
            head_lies_until: millis(facts.head_lies_until),
            answered_at: millis(facts.answered_at),
            control: control.map(|control| (control.at.as_millisecond(), control.status)),
            episodes: codec::episodes_text(&facts.episodes),
        }
    }
}

impl TryFrom<Facts> for HostFacts {
    type Error = Failure;

    fn try_from(facts: Facts) -> Result<Self, Failure> {
        let control = facts.control.map(|(at, status)| {
            let at = codec::time(at)?;
            Ok::<_, Failure>(Control { at, status })
        });
        Ok(Self {
            no_head_until: codec::optional_time(facts.no_head_until)?,
            head_lies_until: codec::optional_time(facts.head_lies_until)?,
            answered_at: codec::optional_time(facts.answered_at)?,
            control: control.transpose()?,
            episodes: codec::episodes(facts.episodes.as_deref())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Episode;
    use plain::random::Random;
    use plain::redirect::Redirect;
    use verdict::life::{Context, Profile};
    use verdict::{Cause, Verdict};

    fn at(seconds: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(1_760_000_000 + seconds).expect("in range")
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut life = verdict::life::Record::default();
        let verdict = (Verdict::Failed(Cause::Status410), Some(410));
        let rules = Profile::Default.rules();
        let context = Context::default();
        let decision = rules.decide(at(5), &mut life, verdict, &context, &mut Random::new(7));
        let change = decision
            .transition
            .map(|change| Change::new(&change, Some(410)));
        let id = DueId {
            host: HostId(3),
            lane: Lane::Trouble,
            due: at(1),
            url: UrlId(9),
        };
        let letter = NewDeadLetter {
            reason: "invalid_url".to_owned(),
            attempts: 5,
            last: "line\nline".to_owned(),
            first_at: at(0),
            last_at: at(4),
        };
        let full = Answer {
            status: Some(410),
            method: Some("GET"),
            detail: Some("\"quoted\"".to_owned()),
            moved_to: Some("https://b.example/".to_owned()),
            final_url: Some("https://c.example/".to_owned()),
            redirects: vec![Redirect {
                status: 301,
                url: "https://c.example/".to_owned(),
            }],
            attempts: 2,
            latency: Some(Duration::from_micros(1_234)),
            address: Some([127, 0, 0, 1].into()),
            checked_at: Some(at(5)),
            ..Answer::of(verdict.0)
        };
        let judgement = Judgement {
            id,
            answer: Some(full.clone()),
            life,
            changes: change.into_iter().collect(),
            next: Some((Lane::Gone, at(900))),
            dead_letter: Some(letter.clone()),
        };
        let empty = Judgement {
            id,
            answer: None,
            life: verdict::life::Record::default(),
            changes: Vec::new(),
            next: None,
            dead_letter: None,
        };
        let facts = HostFacts {
            no_head_until: Some(at(1)),
            head_lies_until: Some(at(2)),
            answered_at: Some(at(3)),
            control: Some(Control {
                at: at(4),
                status: Some(200),
            }),
            episodes: vec![Episode {
                ended: at(5),
                length: Duration::from_secs(60),
            }],
        };
        let late = Late {
            worker: 12,
            judgements: vec![judgement, empty],
            facts: vec![
                (HostId(3), facts.clone()),
                (HostId(4), HostFacts::default()),
            ],
        };
        let line = late.to_line().expect("JSON");
        assert!(!line.contains(&b'\n'));
        let read = Late::from_line(&line).expect("readable");
        assert_eq!(read.worker, 12);
        assert_eq!(read.facts, late.facts);
        assert_eq!(read.judgements.len(), 2);
        let [first, second] = [&read.judgements[0], &read.judgements[1]];
        assert_eq!(first.answer, Some(full));
        assert_eq!(first.dead_letter, Some(letter));
        assert_eq!(
            format!("{:?}", read.judgements),
            format!("{:?}", late.judgements)
        );
        assert_eq!((second.next, second.id), (None, id));
    }

    #[test]
    fn what_is_no_line_is_an_error() {
        let line = br#"{"worker":1,"judgements":[{"host":1,"lane":9,"due":1,"url":1,"answer":null,"life":[],"changes":[],"next":null,"letter":null}],"facts":[]}"#;
        for line in [&b"{"[..], b"{}", line] {
            assert!(Late::from_line(line).is_err());
        }
    }
}
