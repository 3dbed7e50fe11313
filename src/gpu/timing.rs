//! What a frame cost: counters of the front end and GPU time per stage, read back without a stall.
//!
//! One small buffer holds both. It is mapped asynchronously after a frame; while a reading is on
//! its way, later frames are not read. No clock of the processor is asked.

use super::{Error, MapResult, map, read_mapped, wait_for_map};
use std::sync::mpsc::{Receiver, TryRecvError};

/// Most marks of one frame.
const MARKS_MAX: u32 = 24;
/// Where the timestamps lie behind the counters, bytes (a multiple of what resolving demands).
const TIMES_AT: u64 = 256;
const READ_BYTES: u64 = TIMES_AT + MARKS_MAX as u64 * 8;

/// `Counters` in `shaders/shared/types.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Counters {
    /// Survivors of culling, whether or not they fit.
    pub visible_total: u32,
    /// Survivors that are drawn.
    pub visible: u32,
    /// (tile, splat) pairs, whether or not they fit.
    pub pair_total: u32,
    /// Pairs that are drawn.
    pub pairs: u32,
}

/// A reading of one frame.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Sizes of the frame.
    pub counters: Counters,
    /// Milliseconds per stage, empty where the adapter has no timestamps.
    pub stages: Vec<(&'static str, f64)>,
}

/// Marks and the buffer they are read through.
pub struct Timing {
    queries: Option<Queries>,
    names: Vec<&'static str>,
    read: wgpu::Buffer,
    /// Told by the map callback; `None` while nothing is on its way.
    pending: Option<(Receiver<MapResult>, Vec<&'static str>)>,
}

struct Queries {
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    period_ns: f64,
}

impl Timing {
    /// Marks for `device`; without times where timestamps between commands are not to be had.
    pub fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
        let needed =
            wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
        let buffer = |size, usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("frame cost"),
                size,
                usage,
                mapped_at_creation: false,
            })
        };
        let queries = device.features().contains(needed).then(|| Queries {
            set: device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("timestamps"),
                ty: wgpu::QueryType::Timestamp,
                count: MARKS_MAX,
            }),
            resolved: buffer(
                u64::from(MARKS_MAX) * 8,
                wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            ),
            period_ns: f64::from(queue.get_timestamp_period()),
        });
        let read = buffer(
            READ_BYTES,
            wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        );
        Self {
            queries,
            names: Vec::new(),
            read,
            pending: None,
        }
    }

    /// Starts a frame.
    pub fn begin(&mut self, encoder: &mut wgpu::CommandEncoder) {
        self.names.clear();
        if let Some(queries) = &self.queries {
            encoder.write_timestamp(&queries.set, 0);
        }
    }

    /// Marks the end of the stage `name`.
    pub fn mark(&mut self, encoder: &mut wgpu::CommandEncoder, name: &'static str) {
        let Some(queries) = &self.queries else { return };
        let index = self.names.len() as u32 + 1;
        if index < MARKS_MAX {
            encoder.write_timestamp(&queries.set, index);
            self.names.push(name);
        }
    }

    /// Ends a frame. Returns whether this frame will be read (no earlier reading is on its way).
    pub fn end(&self, encoder: &mut wgpu::CommandEncoder, counters: &wgpu::Buffer) -> bool {
        if self.pending.is_some() {
            return false;
        }
        encoder.copy_buffer_to_buffer(counters, 0, &self.read, 0, size_of::<Counters>() as u64);
        if let Some(queries) = &self.queries {
            let count = self.names.len() as u32 + 1;
            encoder.resolve_query_set(&queries.set, 0..count, &queries.resolved, 0);
            let bytes = u64::from(count) * 8;
            encoder.copy_buffer_to_buffer(&queries.resolved, 0, &self.read, TIMES_AT, bytes);
        }
        true
    }

    /// Asks for the reading of the frame just submitted; call where [`Timing::end`] said so.
    pub fn request(&mut self) {
        self.pending = Some((map(&self.read), self.names.clone()));
    }

    /// The reading that was asked for, once it is there. With `wait` it is waited for.
    ///
    /// # Errors
    /// The device was lost.
    pub fn take(&mut self, device: &wgpu::Device, wait: bool) -> Result<Option<Reading>, Error> {
        let Some((mapped, names)) = &self.pending else {
            return Ok(None);
        };
        if wait {
            wait_for_map(device, mapped)?;
        } else {
            // A lost device is reported by the next submit.
            let _ = device.poll(wgpu::PollType::Poll);
            match mapped.try_recv() {
                Ok(Ok(())) => {}
                Err(TryRecvError::Empty) => return Ok(None),
                Ok(Err(_)) | Err(TryRecvError::Disconnected) => {
                    self.pending = None;
                    return Ok(None);
                }
            }
        }
        let bytes = read_mapped(&self.read)?;
        let counters = bytemuck::pod_read_unaligned(&bytes[..size_of::<Counters>()]);
        let period_ns = self.queries.as_ref().map(|q| q.period_ns);
        let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&bytes[TIMES_AT as usize..]);
        let stages = period_ns.map_or_else(Vec::new, |period_ns| {
            names
                .iter()
                .zip(ticks.windows(2))
                .map(|(name, t)| (*name, t[1].saturating_sub(t[0]) as f64 * period_ns * 1e-6))
                .collect()
        });
        self.read.unmap();
        self.pending = None;
        Ok(Some(Reading { counters, stages }))
    }
}
