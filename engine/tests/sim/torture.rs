//! A small fixed program in a fair world, in which one call of the network fails: each call in turn, in each way (the
//! idea is that of curl's `runtests.pl -t`).

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use courser::HostConfig;
use courser::net::Address;
use courser::net::sim::{Behaviour, Failure, Link, Probability};

use crate::plan::{Act, Consumer, Mood, Place, Plan, Spec, Upload};
use crate::run::run;

pub(crate) fn every_call_of_the_network_fails_once() {
    let calls = run(&program(Mood::Fair), 1, |_| ()).net_calls;
    assert!(calls > 40, "the program does too little: {calls}");
    for nth in 0..calls {
        torture(Mood::Foul, nth, Failure::Error);
        torture(Mood::Fair, nth, Failure::OneByte);
        let ends = torture(Mood::Foul, nth, Failure::NotNow);
        let failed = ends
            .iter()
            .filter(|end| end.contains("Error"))
            .collect::<Vec<_>>();
        assert!(failed.len() <= 1, "{failed:?}");
        assert!(
            failed.iter().all(|end| end.contains("AddrNotAvailable")),
            "{failed:?}"
        );
    }
}

fn torture(mood: Mood, nth: u64, failure: Failure) -> Vec<String> {
    run(&program(mood), 1, |net| net.fail_call(nth, failure)).ends
}

fn program(mood: Mood) -> Plan {
    let ms = Duration::from_millis;
    let spec = |id, method, body, consumer| Spec {
        id,
        site: 0,
        method,
        body,
        expect: (id == 3).then_some(ms(50)),
        says_close: id == 5,
        timeout: None,
        consumer,
        own: None,
    };
    let stream = |declared| Upload::Stream {
        length: 3_000,
        declared,
        piece: 1_000,
        pause: Some(ms(5)),
        opened: false,
    };
    let slow = Some(Consumer {
        piece: 500,
        pause: ms(3),
        gives_up_after: usize::MAX,
    });
    let specs = [
        spec(1, "GET", Upload::None, None),
        spec(2, "POST", Upload::Bytes(5_000), None),
        spec(3, "PUT", Upload::Bytes(2_000), None),
        spec(4, "HEAD", Upload::None, None),
        spec(5, "POST", stream(true), None),
        spec(6, "PATCH", stream(false), slow),
        spec(7, "GET", Upload::None, slow),
        spec(8, "DELETE", Upload::None, None),
    ];
    let acts = specs
        .into_iter()
        .enumerate()
        .map(|(n, spec)| (ms(10) * n as u32, Act::Submit(spec)));
    Plan {
        tls: None,
        mood,
        config: HostConfig {
            max_connections: NonZeroUsize::new(2).unwrap_or(NonZeroUsize::MIN),
            retry: courser::Retry {
                max_attempts: NonZeroU32::new(2).unwrap_or(NonZeroU32::MIN),
                ..Default::default()
            },
            timeouts: courser::Timeouts {
                total_streamed: Some(Duration::from_secs(60)),
                ..Default::default()
            },
            ..HostConfig::default()
        },
        web: None,
        pipeline: None,
        places: vec![Place {
            address: Address::Tcp(([10, 0, 0, 1], 80).into()),
            link: Link {
                segment: 300..=300,
                window: 1_500,
                ..Link::default()
            },
            behaviour: Behaviour {
                body: 0..=4_000,
                interim: Probability::per_mille(300),
                ..Behaviour::default()
            },
        }],
        descriptors: usize::MAX,
        early_wakeups: Probability::NEVER,
        watched: true,
        maintains: true,
        acts: acts.collect(),
    }
}
