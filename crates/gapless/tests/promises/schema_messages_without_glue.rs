//! A message of a schema is sent, published and read as an object or a view of its bytes, by clients and nodes, without
//! application code for it; another message is refused and not misread.

use gapless::prelude::*;

include!("../../examples/market/generated/market.rs");

use market::{Accepted, CancelOrder, NewOrder, NewOrderDecoder, Side};

const PATIENCE: Duration = Duration::from_secs(60);
const ORDER: NewOrder = NewOrder { request: 7, price: 10_050, quantity: 3, side: Side::Sell };

struct Mirror;

impl Service for Mirror {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on::<Sbe<NewOrder>>(|_, order, context| {
            context.notify_object(context.session(), &Protobuf(order.clone()))?;
            context.reply(&Sbe(order))
        });
        handlers.on::<Sbe<CancelOrder>>(|_, _, _| Err("nothing is cancelled".into()));
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn client_sends_and_reads_objects() {
    let host = ServiceHost::start(Mirror, ServiceHostOptions::in_memory()).unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(random_token(), 16).unwrap();
    let reply = client.call_message(session, &Sbe(ORDER), PATIENCE).unwrap();
    assert_eq!(reply.message_type(), MessageType::of::<Sbe<NewOrder>>());
    assert_eq!(reply.decode::<Sbe<NewOrder>>().unwrap(), ORDER);
    assert_eq!(reply.decode::<NewOrderDecoder<'static>>().unwrap().price(), ORDER.price);
    let said = reply.decode::<Sbe<Accepted>>().unwrap_err().to_string();
    assert!(said.contains("not a valid Accepted") && said.contains("template"), "{said}");
    assert!(reply.decode::<Protobuf<NewOrder>>().is_err(), "the encoding is another");

    client.send_message(session, &Sbe(CancelOrder { request: 8, order: 7 })).unwrap();
    let (mut refused, mut noticed) = (None, None);
    while refused.is_none() || noticed.is_none() {
        let poll = client.poll(16, |incoming| match incoming {
            Incoming::Reply { reply, .. } => refused = Some(reply.decode::<Sbe<NewOrder>>().unwrap_err().to_string()),
            Incoming::Notice { notice, .. } => noticed = Some(notice.decode::<Protobuf<NewOrder>>().unwrap()),
            _ => {}
        });
        poll.unwrap();
        client.wait(Duration::from_millis(20)).unwrap();
    }
    assert!(refused.unwrap().contains("nothing is cancelled"));
    assert_eq!(noticed, Some(ORDER));
    drop(client);
    host.stop().unwrap();
}

#[test]
fn node_publishes_and_reads_objects() {
    let stream = EventStream::start(&EventStreamOptions::in_memory()).unwrap();
    let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
    let mut node = StreamNode::new(link, StreamNodeOptions::default());
    node.wait_open(PATIENCE).unwrap();
    node.publish_object(&Sbe(ORDER)).unwrap();
    let mut read = None;
    while read.is_none() {
        let poll = node.poll(16, |event| {
            if let NodeEvent::Message(message) = event {
                assert_eq!(message.message_type(), MessageType::of::<NewOrderDecoder<'static>>());
                read = Some(message.decode::<Sbe<NewOrder>>().unwrap());
            }
        });
        poll.unwrap();
    }
    assert_eq!(read, Some(ORDER));
    drop(node);
    stream.stop().unwrap();
}
