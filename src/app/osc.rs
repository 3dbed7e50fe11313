//! Messages from outside over OSC (UDP): a phone's gyroscope, a pointer, events of the author's own.
//!
//! Off unless a port is named; then everybody who reaches the port can send. Understood are
//! `/gyro x y z` (degrees; the first reading is straight ahead), `/pointer x y` (-1 to 1, y up),
//! `/param/NAME value` (a parameter of the scene), `/event NAME values...`, and anything else as a message whose name is the address. A thread
//! receives; the window's loop takes what has come. Malformed packets are counted and dropped.
//!
//! Source: the OSC 1.0 specification, read by the `rosc` crate.

use super::input::Devices;
use crate::frame::Event;
use crate::script::ParamValue;
use anyhow::Context as _;
use glam::{Vec2, Vec3};
use rosc::{OscMessage, OscPacket, OscType};
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Largest packet that UDP carries.
const PACKET_BYTES_MAX: usize = 65_536;
/// Messages that wait for a picture; more are dropped, as they would be by the network.
const QUEUE_MAX: usize = 1024;
/// Bundles in bundles that are followed.
const NESTING_MAX: usize = 8;

/// Begins the address of a parameter.
const PARAM: &str = "/param/";

/// What one message means.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Gyro(Vec3),
    Pointer(Vec2),
    Param(String, ParamValue),
    Event(Event),
}

/// A port that is listened on.
#[derive(Debug)]
pub struct Osc {
    heard: Receiver<Said>,
    address: SocketAddr,
    gyro_zero_deg: Option<Vec3>,
}

impl Osc {
    /// Listens on UDP `port` of all interfaces; 0 takes a free one.
    ///
    /// # Errors
    /// The port is taken, or the system allows no socket or thread.
    pub fn listen(port: u16) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind(("0.0.0.0", port))
            .with_context(|| format!("cannot listen for OSC on port {port} (--osc)"))?;
        let address = socket.local_addr()?;
        let (heard_by, heard) = sync_channel(QUEUE_MAX);
        std::thread::Builder::new()
            .name("osc".to_owned())
            .spawn(move || receive(&socket, &heard_by))
            .context("cannot start the thread that receives OSC")?;
        tracing::info!("listening for OSC on UDP port {}", address.port());
        Ok(Self {
            heard,
            address,
            gyro_zero_deg: None,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes in what has come since the last call.
    pub fn poll(&mut self, devices: &mut Devices) {
        while let Ok(said) = self.heard.try_recv() {
            match said {
                Said::Gyro(angles_deg) => {
                    let zero_deg = *self.gyro_zero_deg.get_or_insert(angles_deg);
                    devices.gyro((angles_deg - zero_deg).map(short_way_deg));
                }
                Said::Pointer(at) => devices.point(at.as_dvec2()),
                Said::Param(name, value) => devices.param(&name, value),
                Said::Event(event) => devices.message(event),
            }
        }
    }
}

/// The same angle between -180 and 180.
fn short_way_deg(angle_deg: f32) -> f32 {
    angle_deg - 360.0 * (angle_deg / 360.0).round()
}

fn receive(socket: &UdpSocket, heard_by: &SyncSender<Said>) {
    let mut bytes = vec![0; PACKET_BYTES_MAX];
    let mut malformed = 0_u64;
    loop {
        let length = match socket.recv_from(&mut bytes) {
            Ok((length, _)) => length,
            // The answer to a packet of somebody else's; the next one may be fine.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => continue,
            Err(error) => {
                tracing::warn!("OSC: {error}; no more messages are received");
                return;
            }
        };
        // The decoder follows any depth, on a thread's small stack.
        let packet = Some(&bytes[..length])
            .filter(|packet| is_shallow(packet, 0))
            .and_then(|packet| rosc::decoder::decode_udp(packet).ok());
        let Some((_, packet)) = packet else {
            malformed += 1;
            if malformed.is_power_of_two() {
                tracing::warn!("OSC: {malformed} packets could not be read so far");
            }
            continue;
        };
        let mut all = Vec::new();
        collect(packet, &mut all);
        for said in all {
            if let Err(TrySendError::Disconnected(_)) = heard_by.try_send(said) {
                return;
            }
        }
    }
}

/// Whether bundles lie in bundles no deeper than [`NESTING_MAX`]. Anything else that is wrong is left
/// to the decoder.
fn is_shallow(packet: &[u8], depth: usize) -> bool {
    // A bundle is "#bundle", a zero, eight bytes of time, and elements behind their lengths.
    const HEADER: usize = 16;
    if !packet.starts_with(b"#bundle\0") {
        return true;
    }
    if depth >= NESTING_MAX {
        return false;
    }
    let mut rest = packet.get(HEADER..).unwrap_or_default();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some(element) = after.get(..length) else {
            return true;
        };
        if !is_shallow(element, depth + 1) {
            return false;
        }
        rest = &after[length..];
    }
    true
}

fn collect(packet: OscPacket, all: &mut Vec<Said>) {
    match packet {
        OscPacket::Message(message) => all.extend(meaning(&message)),
        OscPacket::Bundle(bundle) => {
            for inner in bundle.content {
                collect(inner, all);
            }
        }
    }
}

/// `None` for a gyroscope or pointer without its numbers.
fn meaning(message: &OscMessage) -> Option<Said> {
    let numbers: Vec<f64> = message.args.iter().filter_map(number).collect();
    let lane = |i: usize| {
        let lane = number(message.args.get(i)?)? as f32;
        lane.is_finite().then_some(lane)
    };
    match message.addr.as_str() {
        "/gyro" => Some(Said::Gyro(Vec3::new(lane(0)?, lane(1)?, lane(2)?))),
        "/pointer" => {
            let at = Vec2::new(lane(0)?, lane(1)?);
            Some(Said::Pointer(at.clamp(Vec2::NEG_ONE, Vec2::ONE)))
        }
        address if address.starts_with(PARAM) => {
            let value = match message.args.first()? {
                OscType::String(text) => ParamValue::Text(text.clone()),
                OscType::Bool(flag) => ParamValue::Flag(*flag),
                other => ParamValue::Number(number(other)?),
            };
            let name = address[PARAM.len()..].to_owned();
            Some(Said::Param(name, value))
        }
        address => {
            let name = match (address, message.args.first()) {
                ("/event", Some(OscType::String(name))) => name.clone(),
                _ => address.trim_start_matches('/').to_owned(),
            };
            Some(Said::Event(Event {
                kind: "message".to_owned(),
                name,
                values: numbers,
                target: None,
                row: None,
            }))
        }
    }
}

/// A finite number; booleans are 1 and 0.
fn number(value: &OscType) -> Option<f64> {
    let number = match value {
        OscType::Int(n) => f64::from(*n),
        OscType::Long(n) => *n as f64,
        OscType::Float(n) => f64::from(*n),
        OscType::Double(n) => *n,
        OscType::Bool(b) => f64::from(u8::from(*b)),
        _ => return None,
    };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rosc::encoder::encode;
    use std::time::{Duration, Instant};

    fn message(addr: &str, args: Vec<OscType>) -> OscMessage {
        OscMessage {
            addr: addr.to_owned(),
            args,
        }
    }

    #[test]
    fn messages_mean_what_they_say() {
        let floats = |v: &[f32]| v.iter().map(|f| OscType::Float(*f)).collect();
        assert_eq!(
            meaning(&message("/pointer", floats(&[2.0, -0.5]))),
            Some(Said::Pointer(Vec2::new(1.0, -0.5)))
        );
        assert_eq!(meaning(&message("/gyro", floats(&[1.0, f32::NAN]))), None);
        assert_eq!(
            meaning(&message("/gyro", floats(&[f32::NAN, 1.0, 2.0, 3.0]))),
            None,
            "the numbers stand where they were sent"
        );
        let beyond = vec![OscType::Double(1e300), OscType::Int(0), OscType::Int(0)];
        assert_eq!(meaning(&message("/gyro", beyond)), None);
        let said = meaning(&message(
            "/event",
            vec![OscType::String("wave".into()), OscType::Int(3)],
        ));
        let Some(Said::Event(event)) = said else {
            panic!("no event: {said:?}");
        };
        assert_eq!((event.name.as_str(), event.values), ("wave", vec![3.0]));
        let Some(Said::Event(event)) = meaning(&message("/lamp/glow", floats(&[0.5]))) else {
            panic!("no message");
        };
        assert_eq!(event.name, "lamp/glow");
        let param = |value| Some(Said::Param("glow".to_owned(), value));
        let said = meaning(&message("/param/glow", floats(&[0.5])));
        assert_eq!(said, param(ParamValue::Number(0.5)));
        let said = meaning(&message("/param/glow", vec![OscType::String("dim".into())]));
        assert_eq!(said, param(ParamValue::Text("dim".to_owned())));
        assert_eq!(meaning(&message("/param/glow", Vec::new())), None);
        assert_eq!(meaning(&message("/param/glow", floats(&[f32::NAN]))), None);
    }

    #[test]
    fn bundles_in_bundles_in_bundles_are_not_followed_for_ever() {
        let nested = |depth: usize| {
            let mut packet = b"/a\0\0,\0\0\0".to_vec();
            for _ in 0..depth {
                let mut outer = b"#bundle\0\0\0\0\0\0\0\0\x01".to_vec();
                outer.extend((packet.len() as u32).to_be_bytes());
                outer.extend(&packet);
                packet = outer;
            }
            packet
        };
        assert!(is_shallow(&nested(NESTING_MAX), 0));
        assert!(!is_shallow(&nested(NESTING_MAX + 1), 0));
        assert!(!is_shallow(&nested(3000), 0));
        assert!(
            is_shallow(b"#bundle\0", 0),
            "cut short: the decoder says so"
        );
    }

    #[test]
    fn a_phone_turns_from_its_first_reading_the_short_way() {
        let mut osc = Osc::listen(0).unwrap();
        let mut devices = Devices::default();
        devices.resize([100, 100]);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = ("127.0.0.1", osc.address().port());
        sender.send_to(b"not OSC at all", to).unwrap();
        for x in [170.0, -175.0] {
            let packet = OscPacket::Message(message(
                "/gyro",
                vec![OscType::Float(x), OscType::Float(0.0), OscType::Double(5.0)],
            ));
            sender.send_to(&encode(&packet).unwrap(), to).unwrap();
        }
        let start = Instant::now();
        let turned = |devices: &mut Devices| devices.input().gyro_deg.filter(|g| g.x > 1.0);
        while turned(&mut devices).is_none() && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(5));
            osc.poll(&mut devices);
        }
        let turned = turned(&mut devices).expect("the readings arrive");
        assert!((turned - Vec3::X * 15.0).length() < 1e-3, "{turned}");
    }
}
