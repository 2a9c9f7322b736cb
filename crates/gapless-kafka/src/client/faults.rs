//! Errors for the tests of this crate, by librdkafka's mock cluster.

use super::{BrokerConnection, Producer};
use rdkafka::bindings;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

pub(crate) struct FaultyCluster(MockCluster<'static, DefaultProducerContext>);

impl FaultyCluster {
    pub(crate) fn start() -> Self {
        Self(MockCluster::new(1).unwrap())
    }

    pub(crate) fn connection(&self) -> BrokerConnection {
        BrokerConnection::new(&self.0.bootstrap_servers(), "test")
    }

    pub(crate) fn make(&self, topic: &str) {
        self.0.create_topic(topic, 1, 1).unwrap();
    }

    pub(crate) fn spoil_reads(&self, count: usize) {
        self.0.request_errors(RDKafkaApiKey::Fetch, &vec![RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_MSG; count]);
    }

    pub(crate) fn end(producer: &Producer) {
        let code = RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
        // SAFETY: the client lives as long as `producer`, and the text as long as the call, which copies it.
        let result =
            unsafe { bindings::rd_kafka_test_fatal_error(producer.native_ptr(), code, c"the test says so".as_ptr()) };
        assert_eq!(result, RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR);
    }
}
