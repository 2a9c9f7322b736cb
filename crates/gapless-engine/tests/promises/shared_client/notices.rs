//! Notices are a stream: typed, in order, and without silent gaps, however slowly they are taken.

use super::*;
use gapless_agent::block_on::block_on;
use gapless_client::blocking;
use gapless_client::shared::{NOTICES_KEPT_MAX, Notice, NoticesLost};
use gapless_message::State;

#[derive(Default, Serialize, Deserialize, State)]
struct Teller {
    told: u64,
}

/// Replied to with the number of notices so far.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Tell {
    count: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Told {
    number: u64,
}

#[gapless_engine::service]
impl Teller {
    #[command]
    fn tell(&mut self, Tell { count }: Tell, context: &mut Context<'_>) -> u64 {
        for _ in 0..count {
            self.told += 1;
            context.notify(context.session(), &Told { number: self.told }).unwrap();
        }
        self.told
    }
}

fn start(directory: &Path) -> ServiceHost {
    ServiceHost::start(Teller::default(), ServiceHostOptions::in_directory(directory)).unwrap()
}

fn number(notice: Option<Result<Notice, NoticesLost>>) -> u64 {
    let notice = notice.unwrap().unwrap();
    assert!(notice.is::<Told>() && !notice.is::<Twice>());
    assert!(notice.read::<Twice>().is_err());
    notice.read::<Told>().unwrap().number
}

#[test]
fn notices_of_all_sessions_survive_restarts() {
    const ROUNDS: u64 = 90;
    let directory = tempfile::tempdir().unwrap();
    let mut host = start(directory.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let connect = Client::connect(directory.path().to_str().unwrap()).sessions(3).within(PATIENCE);
    let client = runtime.block_on(connect.into_future()).unwrap();
    let mut notices = client.notices();
    drop(client.notices());
    let listener = runtime.spawn(async move {
        let mut numbers = Vec::new();
        while (numbers.len() as u64) < ROUNDS * 10 {
            numbers.push(number(notices.next().await));
        }
        numbers
    });
    for round in 0..ROUNDS {
        if round % 30 == 29 {
            host.stop().unwrap();
            host = start(directory.path());
        }
        runtime.block_on(client.call(Tell { count: 10 })).unwrap();
    }
    assert_once(runtime.block_on(listener).unwrap(), 1..ROUNDS * 10 + 1);
    assert_eq!(client.discarded_notices(), 0);
    host.stop().unwrap();
}

#[test]
fn slow_stream_delays_no_command() {
    const COUNT: u64 = 500;
    let host = ServiceHost::start(Teller::default(), ServiceHostOptions::in_memory()).unwrap();
    let client = blocking::Client::over(host.connect(ClientOptions::default()).unwrap(), options(1)).unwrap();
    let mut notices = client.notices();
    let kept = NOTICES_KEPT_MAX as u64;
    // At most 1,024 notices arrive later than the last reply.
    let calls = kept / COUNT + 4;
    for call in 1..=calls {
        assert_eq!(client.call(Tell { count: COUNT }), Ok(call * COUNT));
    }
    let (mut last, mut lost) = (0, 0);
    while last < calls * COUNT {
        match notices.next() {
            Some(Err(NoticesLost::Slow { count })) => (last, lost) = (last + count, lost + count),
            notice => {
                last += 1;
                assert_eq!(number(notice), last);
            }
        }
        assert!(last <= kept || lost > 0);
    }
    assert_eq!(last, calls * COUNT);
    client.call(Tell { count: 1 }).unwrap();
    assert_eq!(number(notices.next()), calls * COUNT + 1);
    host.stop().unwrap();
    assert_eq!(notices.next(), None, "the client has ended");
    let reason = block_on(client.shared().ended());
    assert!(reason.contains("in this process has stopped"), "{reason}");
    assert_eq!(client.end_reason(), Some(reason));
}
