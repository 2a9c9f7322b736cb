//! A call without a reply says what became of its command.

use super::*;
use gapless_agent::block_on::block_on;
use gapless_client::{CallError, ClientError};
use gapless_wire::control::RefusalCode;

/// A request of the same name with another layout.
mod other {
    use super::*;

    #[derive(Debug, Serialize, Deserialize, Message)]
    #[message(reply = u32)]
    pub struct Add {
        pub name: String,
    }
}

#[test]
fn refusal_has_its_own_type() {
    let host = in_memory(&Gate::default());
    let client = client_of(&host, 1);
    block_on(async {
        assert_eq!(add(&client, ONCE).await, Ok(1));
        let refused = add(&client, ONCE).await.unwrap_err();
        assert_eq!(refused.took_effect(), Some(false));
        assert_eq!(refused.refusal(), Ok(Twice { name: ONCE, first_place: 1 }));
        assert_eq!(effects(&client).await, [ONCE]);
    });
    host.stop().unwrap();
}

#[test]
fn panicking_handler_fails_its_call() {
    let host = in_memory(&Gate::default());
    let client = client_of(&host, 1);
    block_on(async {
        let failed = client.call(Panic).await.unwrap_err();
        let CallError::Failed { sequence, code: RefusalCode::HandlerPanicked, reason } = &failed else {
            panic!("{failed}")
        };
        assert!(*sequence > 0 && reason.contains("a bug"), "{failed}");
        assert_eq!(failed.took_effect(), Some(false));
        assert_eq!(add(&client, 1).await, Ok(1));
    });
    host.stop().unwrap();
}

#[test]
fn client_of_other_types_fails() {
    let host = in_memory(&Gate::default());
    let client = client_of(&host, 1);
    block_on(async {
        let failed = client.call(other::Add { name: "x".to_owned() }).await.unwrap_err();
        let CallError::Mismatch { name: "Add", difference } = &failed else { panic!("{failed}") };
        assert!(difference.contains("at the client"), "{difference}");
        assert_eq!(failed.took_effect(), Some(false));
        assert_eq!(add(&client, 1).await, Ok(1));
    });
    host.stop().unwrap();
}

#[test]
fn too_long_command_is_not_sent() {
    #[derive(Serialize, Deserialize, Message)]
    #[message(request)]
    struct Long(Vec<u8>);
    let host = in_memory(&Gate::default());
    let client = client_of(&host, 1);
    block_on(async {
        let error = client.call(Long(vec![7; 65 << 20])).await.unwrap_err();
        let CallError::Invalid { reason } = &error else { panic!("{error}") };
        assert!(reason.contains("longer than the limit"), "{reason}");
        assert_eq!(add(&client, 1).await, Ok(1));
    });
    host.stop().unwrap();
}

#[test]
fn deadlines_end_calls() {
    let gate = Gate::default();
    let host = in_memory(&gate);
    let client = client_of(&host, 1);
    block_on(add(&client, 0)).unwrap();
    let closed = gate.close();
    let brief = Duration::from_millis(50);
    let sent = client.start(Add { name: 1 });
    closed.await_arrival();
    block_on(async {
        let sent = sent.within(brief);
        let others: Vec<_> = (2..65).map(|name| client.start(Add { name })).collect();
        let waiting = add(&client, 65).within(brief);
        let unknown = sent.await.unwrap_err();
        assert!(matches!(&unknown, CallError::Unknown { number, .. } if number.session_seq == 2), "{unknown}");
        assert_eq!(unknown.took_effect(), None);
        let not_sent = waiting.await.unwrap_err();
        let CallError::NotSent { reason } = &not_sent else { panic!("{not_sent}") };
        assert!(reason.contains("within 50 ms"), "{reason}");
        let at_once = add(&client, 66).within(Duration::ZERO).await.unwrap_err();
        assert_eq!(at_once.took_effect(), Some(false), "{at_once}");
        closed.open();
        for call in others {
            call.await.unwrap();
        }
        assert_eq!(effects(&client).await, Vec::from_iter(0..65));
        assert_eq!(add(&client, 67).within(Duration::MAX).await, Ok(66));
    });
    host.stop().unwrap();
}

#[test]
fn stopped_host_ends_calls_in_its_process() {
    let host = in_memory(&Gate::default());
    let client = client_of(&host, 1);
    block_on(add(&client, 0)).unwrap();
    host.stop().unwrap();
    block_on(async {
        for name in 1..4 {
            let error = add(&client, name).await.unwrap_err();
            assert!(error.to_string().contains("the service in this process has stopped"), "{error}");
        }
        assert!(matches!(add(&client, 5).await, Err(CallError::NotSent { .. })));
    });
}

#[test]
fn bad_options_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let address = directory.path().to_str().unwrap().to_owned();
    let connect = || Client::connect(&address);
    block_on(async {
        let absent = connect().await.unwrap_err();
        assert!(absent.to_string().contains("node.socket"), "{absent}");
        assert!(matches!(connect().blocking(), Err(ClientError::Transport(_))));
        for (connect, named) in [
            (connect().sessions(0), "sessions"),
            (connect().sessions(1_025), "sessions"),
            (connect().waiting_max(0), "waiting_max"),
            (Client::connect("tls://a:1"), "address"),
        ] {
            let error = connect.await.unwrap_err();
            assert!(matches!(error, ClientError::Option { option, .. } if option == named), "{error}");
        }
        // Dropped before it is polled, and while its thread connects.
        drop(connect().into_future());
        let mut connecting = Box::pin(connect().into_future());
        let _ = connecting.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        drop(connecting);
    });
}
