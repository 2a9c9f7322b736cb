use std::path::Path;
use std::process::Command;

const FIELDS: [&str; 14] = [
    "ip.checksum.status",
    "udp.checksum.status",
    "moldudp64.session",
    "moldudp64.sequence",
    "moldudp64.count",
    "moldudp64.msgseq",
    "moldudp64.msglen",
    "moldudp64.msgdata",
    "moldudp64.count.invalid",
    "moldudp64.msglen.invalid",
    "moldudp64.end_of_session_extra",
    "_ws.malformed",
    "ip.dst",
    "frame.protocols",
];

#[derive(Debug)]
pub struct Message {
    pub sequence: u64,
    pub length: usize,
    pub data: Vec<u8>,
}

#[derive(Debug)]
pub struct DecodedPacket {
    pub session: String,
    pub sequence: u64,
    pub count: u16,
    pub messages: Vec<Message>,
    /// `Heartbeat`, `End Of Session`, `Request` or one with messages.
    pub kind: String,
    pub is_answer: bool,
    /// Both checksums are right.
    is_whole: bool,
    is_mold: bool,
    complaints: Vec<String>,
}

impl DecodedPacket {
    pub fn is_sound(&self) -> bool {
        self.is_whole && self.is_mold && self.complaints.is_empty()
    }
}

pub fn is_there() -> bool {
    Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success())
}

pub fn decode(pcap: &Path, ports: &[u16]) -> Vec<DecodedPacket> {
    let mut fields = vec!["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"];
    fields.extend(FIELDS.iter().flat_map(|field| ["-e", field]));
    let (decoded, summaries) = (run(pcap, ports, &fields), run(pcap, ports, &[]));
    assert_eq!(decoded.lines().count(), summaries.lines().count());
    decoded.lines().zip(summaries.lines()).map(|(line, summary)| read(line, summary)).collect()
}

fn run(pcap: &Path, ports: &[u16], options: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(pcap);
    for port in ports {
        command.args(["-d", &format!("udp.port=={port},moldudp64")]);
    }
    command.args(["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]).args(options);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn read(line: &str, summary: &str) -> DecodedPacket {
    let fields: Vec<&str> = line.split('\t').collect();
    let field = |name: &str| fields[FIELDS.iter().position(|field| *field == name).unwrap()];
    let list =
        |name: &str| field(name).split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (sequences, lengths, data) = (list("moldudp64.msgseq"), list("moldudp64.msglen"), list("moldudp64.msgdata"));
    assert!(sequences.len() == lengths.len() && data.len() <= lengths.len(), "{line}");
    let mut data = data.into_iter();
    let messages = sequences.iter().zip(&lengths).map(|(sequence, length)| {
        let length = length.parse().unwrap();
        let data = if length == 0 { Vec::new() } else { from_hex(&data.next().unwrap_or_default()) };
        Message { sequence: sequence.parse().unwrap(), length, data }
    });
    let complaints =
        ["moldudp64.count.invalid", "moldudp64.msglen.invalid", "moldudp64.end_of_session_extra", "_ws.malformed"];
    DecodedPacket {
        session: field("moldudp64.session").to_owned(),
        sequence: field("moldudp64.sequence").parse().unwrap(),
        count: field("moldudp64.count").parse().unwrap(),
        messages: messages.collect(),
        kind: summary.rsplit("MoldUDP64 ").next().unwrap().to_owned(),
        is_answer: field("ip.dst").starts_with("127."),
        // 1 is tshark's "good".
        is_whole: field("ip.checksum.status") == "1" && field("udp.checksum.status") == "1",
        is_mold: field("frame.protocols").split(':').any(|protocol| protocol == "moldudp64"),
        complaints: complaints.iter().flat_map(|name| list(name)).collect(),
    }
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
