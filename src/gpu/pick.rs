//! Stage "pick": the splats of one pixel, read back without a stall.
//!
//! A shader lists every projected splat that blends into the pixel; the host puts the list in order
//! and says which target is hit ([`crate::frame::front_most`]). Lists come back through a few
//! buffers that are mapped asynchronously. An answer is at most [`AGE_MAX`] pictures old: one that
//! takes longer is waited for, which a GPU that keeps up never needs. Twin:
//! [`crate::reference::pick`].

use super::layouts::{Kind, bind, compute, layout, words_buffer};
use super::shaders::ShaderSource;
use super::{Context, Error, MapResult, map, read_mapped, wait_for_map};
use crate::frame::Touch;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError};
use wgpu::BufferUsages as Usage;

/// Pictures between a question and its answer, at most.
pub const AGE_MAX: u64 = 2;
/// Touches that fit at first; a pixel of a dense scan has some hundreds.
const CAPACITY_START: u32 = 2048;
/// Touches that are read at most: more than any picture needs to become opaque.
const CAPACITY_MAX: u32 = 1 << 20;
/// Words before the list, and of one touch.
const HEADER_WORDS: u32 = 4;
const TOUCH_WORDS: u32 = 4;

/// The splats of the pixel that was asked for, of one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Touches {
    /// The picture's number, as given with the question.
    pub picture: u64,
    /// In no order.
    pub list: Vec<Touch>,
}

struct Reading {
    picture: u64,
    buffer: wgpu::Buffer,
    mapped: Receiver<MapResult>,
}

/// Pipeline, list and readings on their way.
pub struct Pick {
    layout: wgpu::BindGroupLayout,
    capacity: u32,
    list: wgpu::Buffer,
    spare: Vec<wgpu::Buffer>,
    readings: VecDeque<Reading>,
    /// Copied in this picture's commands and not yet submitted.
    copied: Option<wgpu::Buffer>,
}

/// Buffers of the front end that the stage reads.
pub struct Records<'a> {
    /// Offsets of survivors by workgroup.
    pub offsets: &'a wgpu::Buffer,
    /// See [`super::front::Records`].
    pub shape: &'a wgpu::Buffer,
    /// See [`super::front::Records`].
    pub form: &'a wgpu::Buffer,
    /// See [`super::front::Records`].
    pub colour: &'a wgpu::Buffer,
}

impl Pick {
    /// With a list of the usual length.
    pub fn new(device: &wgpu::Device) -> Self {
        Self {
            layout: layout(
                device,
                "pick",
                wgpu::ShaderStages::COMPUTE,
                &[Kind::Read, Kind::Read, Kind::Read, Kind::Read, Kind::Write],
            ),
            capacity: CAPACITY_START,
            list: list_buffer(device, CAPACITY_START),
            spare: Vec::new(),
            readings: VecDeque::new(),
            copied: None,
        }
    }

    /// The pipeline; `uniforms` and `pages` are the layouts of groups 0 and 1.
    ///
    /// # Errors
    /// A shader that does not validate.
    pub fn pipeline(
        &self,
        device: &wgpu::Device,
        shaders: &ShaderSource,
        uniforms: &wgpu::BindGroupLayout,
        pages: &wgpu::BindGroupLayout,
    ) -> Result<wgpu::ComputePipeline, Error> {
        let module = shaders.module(device, "pick", &["shared/types.wgsl", "pick.wgsl"])?;
        let layouts = [uniforms, pages, &self.layout];
        Ok(compute(device, &module, "pick", &layouts))
    }

    /// Empties the list and binds it with the records of this picture.
    pub fn begin(
        &self,
        device: &wgpu::Device,
        encoder: &mut wgpu::CommandEncoder,
        records: &Records<'_>,
    ) -> wgpu::BindGroup {
        encoder.clear_buffer(&self.list, 0, Some(u64::from(HEADER_WORDS) * 4));
        let buffers = [
            records.offsets,
            records.shape,
            records.form,
            records.colour,
            &self.list,
        ];
        bind(
            device,
            &self.layout,
            &buffers.map(wgpu::Buffer::as_entire_binding),
        )
    }

    /// Copies the list to where it will be read.
    pub fn copy(&mut self, device: &wgpu::Device, encoder: &mut wgpu::CommandEncoder) {
        let size = self.list.size();
        let buffer = self.spare.pop().unwrap_or_else(|| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("touches"),
                size,
                usage: Usage::COPY_DST | Usage::MAP_READ,
                mapped_at_creation: false,
            })
        });
        encoder.copy_buffer_to_buffer(&self.list, 0, &buffer, 0, size);
        self.copied = Some(buffer);
    }

    /// Asks for the list just submitted.
    pub fn request(&mut self, picture: u64) {
        if let Some(buffer) = self.copied.take() {
            let mapped = map(&buffer);
            self.readings.push_back(Reading {
                picture,
                buffer,
                mapped,
            });
        }
    }

    /// The newest answer that has come, if any. Waits for those that would grow older than
    /// [`AGE_MAX`] with picture `next`; with `wait` for all.
    ///
    /// # Errors
    /// The device was lost.
    pub fn take(
        &mut self,
        context: &Context,
        next: u64,
        wait: bool,
    ) -> Result<Option<Touches>, Error> {
        if self.readings.is_empty() {
            return Ok(None);
        }
        // A lost device is reported by the next submit.
        let _ = context.device.poll(wgpu::PollType::Poll);
        let mut newest = None;
        while let Some(reading) = self.readings.front() {
            if wait || next.saturating_sub(reading.picture) > AGE_MAX {
                wait_for_map(&context.device, &reading.mapped)?;
            } else {
                match reading.mapped.try_recv() {
                    Ok(Ok(())) => {}
                    Err(TryRecvError::Empty) => break,
                    Ok(Err(_)) | Err(TryRecvError::Disconnected) => {
                        self.readings.pop_front();
                        continue;
                    }
                }
            }
            let Some(reading) = self.readings.pop_front() else {
                break;
            };
            let bytes = read_mapped(&reading.buffer)?;
            reading.buffer.unmap();
            let (found, list) = touches_in(&bytes);
            // Buffers of a former length are dropped.
            if reading.buffer.size() == self.list.size() {
                self.spare.push(reading.buffer);
            }
            let is_whole = found <= self.capacity;
            if !is_whole && self.capacity < CAPACITY_MAX {
                self.capacity = found.saturating_add(found / 4).min(CAPACITY_MAX);
                self.list = list_buffer(&context.device, self.capacity);
                self.spare.clear();
            }
            // What is left of a list that did not fit may lack the nearest splat; past the largest
            // list there is nothing better.
            if is_whole || self.capacity >= CAPACITY_MAX {
                newest = Some(Touches {
                    picture: reading.picture,
                    list,
                });
            }
        }
        Ok(newest)
    }

    /// Touches that the list holds.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }
}

fn list_buffer(device: &wgpu::Device, capacity: u32) -> wgpu::Buffer {
    let words = u64::from(HEADER_WORDS) + u64::from(capacity) * u64::from(TOUCH_WORDS);
    words_buffer(
        device,
        "touch list",
        words,
        Usage::COPY_SRC | Usage::COPY_DST,
    )
}

/// How many there were, and those that fit.
fn touches_in(bytes: &[u8]) -> (u32, Vec<Touch>) {
    let words: Vec<u32> = bytemuck::pod_collect_to_vec(bytes);
    let found = words.first().copied().unwrap_or(0);
    let list = words
        .get(HEADER_WORDS as usize..)
        .unwrap_or_default()
        .chunks_exact(TOUCH_WORDS as usize)
        .take(found as usize)
        .map(|w| Touch {
            draw: w[0],
            row: w[1],
            depth_m: f32::from_bits(w[2]),
            alpha: f32::from_bits(w[3]),
        })
        .collect();
    (found, list)
}
