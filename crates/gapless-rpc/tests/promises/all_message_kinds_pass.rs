use super::tasks_serve_processes::pair;
use gapless_rpc::{Caller, Json, Message};
use gapless_schema::{Protobuf, Sbe};
use gapless_schema_tests::samples;
use std::fmt::Debug;
use std::sync::Arc;

fn comes_back<M: Message + Clone + Debug + PartialEq>(message: &M) {
    let (_folder, elsewhere, domain) = pair();
    let _here = domain.serve("here").handle(|message: M, _| Ok(message)).unwrap();
    let _elsewhere = elsewhere.serve("elsewhere").handle(|message: M, _| Ok(message)).unwrap();
    for route in ["here", "elsewhere"] {
        let caller: Caller<M, M> = domain.caller(route).unwrap();
        assert_eq!(caller.call(message.clone()).as_ref(), Ok(message), "{route}");
    }
}

#[test]
fn every_message_kind_is_echoed() {
    comes_back(&Sbe(samples::reference()));
    comes_back(&Protobuf(samples::reference()));
    comes_back(&Json::new(r#"{"id": 7}"#).unwrap());
    comes_back(&vec![0_u8, 255]);
    comes_back(&"text".to_owned());
    comes_back(&Arc::new("text".to_owned()));
}

#[test]
fn arc_is_not_copied_in_a_process() {
    let (_folder, elsewhere, domain) = pair();
    let _here = domain.serve("here").handle(|text: Arc<String>, _| Ok(text)).unwrap();
    let _elsewhere = elsewhere.serve("elsewhere").handle(|text: String, _| Ok(text.len() as u64)).unwrap();
    let text = Arc::new("text".to_owned());
    let same = domain.caller::<Arc<String>, Arc<String>>("here").unwrap().call(Arc::clone(&text)).unwrap();
    assert!(Arc::ptr_eq(&text, &same));
    assert_eq!(domain.caller::<Arc<String>, u64>("elsewhere").unwrap().call(text), Ok(4));
}
