use super::world::World;
use gapless_client::node::{SharedMemoryLink, SharedMemoryOptions};
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use tempfile::TempDir;

pub struct SharedMemory {
    directory: TempDir,
    options: EventStreamOptions,
    stream: Option<EventStream>,
}

impl World for SharedMemory {
    type Link = SharedMemoryLink;

    const FORGETS: bool = true;

    fn start(change: impl Fn(&mut EventStreamOptions) + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = EventStreamOptions::in_directory(directory.path());
        options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
        options.window_bytes = 8 << 20;
        options.message_length_max = 2 << 20;
        options.frame_length_max = 1_376;
        change(&mut options);
        let stream = Some(EventStream::start(&options).unwrap());
        Self { directory, options, stream }
    }

    fn link(&mut self) -> SharedMemoryLink {
        SharedMemoryLink::new(self.directory.path(), SharedMemoryOptions::default())
    }

    fn stream(&self) -> &EventStream {
        self.stream.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.stream = None;
        self.stream = Some(EventStream::start(&self.options).unwrap());
    }
}

crate::every_transport_conforms::suite::conformance!(SharedMemory);
