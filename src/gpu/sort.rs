//! Stable sorts of (key, value) pairs whose number only the GPU knows.
//!
//! On GPUs by the `lampshade` library: a radix sort with a native path for NVIDIA's Vulkan driver
//! and a portable one that assumes no subgroup size. On software drivers the host sorts: there a
//! sort of packed u64 is an order of magnitude faster than any shader.

use super::{Context, Error};
use rayon::prelude::*;

/// Sorts one pair of buffers.
pub enum Sorter {
    /// On the GPU.
    Library(Box<lampshade::KeyValueSoaSorter>),
    /// On the processor, after reading the keys back.
    Host,
}

impl Sorter {
    /// The sorter that suits the adapter's type.
    pub fn new(context: &Context) -> Self {
        if context.is_software() {
            Self::Host
        } else {
            Self::library(context)
        }
    }

    /// The GPU sorter, whatever the adapter.
    pub fn library(context: &Context) -> Self {
        Self::Library(Box::new(lampshade::KeyValueSoaSorter::new(
            &context.device,
            &context.queue,
        )))
    }

    /// Whether the host sorts.
    pub fn is_host(&self) -> bool {
        matches!(self, Self::Host)
    }

    /// Binds the buffers that [`Sorter::record`] will sort: `keys` and `values` of `capacity`
    /// words, the number of pairs in word `count_word` of `counts`.
    ///
    /// # Errors
    /// The library refused.
    pub fn prepare(
        &mut self,
        keys: &wgpu::Buffer,
        values: &wgpu::Buffer,
        counts: &wgpu::Buffer,
        count_word: u32,
        capacity: u32,
    ) -> Result<(), Error> {
        match self {
            Self::Library(sorter) => sorter
                .prepare_counted_from_word(keys, values, counts, count_word, capacity)
                .map_err(refused),
            Self::Host => Ok(()),
        }
    }

    /// Records the GPU sort of the prepared buffers.
    ///
    /// # Errors
    /// The library refused.
    pub fn record(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        keys: &wgpu::Buffer,
        values: &wgpu::Buffer,
        counts: &wgpu::Buffer,
        count_word: u32,
        capacity: u32,
    ) -> Result<(), Error> {
        match self {
            Self::Library(sorter) => sorter
                .record_reserved_sort_counted_from_word(
                    encoder, keys, values, counts, count_word, capacity,
                )
                .map_err(refused),
            Self::Host => Ok(()),
        }
    }

    /// Submits what is recorded, reads `count` keys, and writes to `order` the places of the keys
    /// from small to large, equal keys by place.
    ///
    /// # Errors
    /// The device was lost.
    pub fn sort_on_host(
        &self,
        context: &Context,
        encoder: &mut wgpu::CommandEncoder,
        keys: &wgpu::Buffer,
        order: &wgpu::Buffer,
        count: u32,
    ) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let bytes = super::read_now(context, encoder, keys, u64::from(count) * 4)?;
        let mut pairs: Vec<u64> = bytes
            .as_chunks::<4>()
            .0
            .par_iter()
            .enumerate()
            .map(|(place, key)| u64::from(u32::from_le_bytes(*key)) << 32 | place as u64)
            .collect();
        pairs.par_sort_unstable();
        let places: Vec<u32> = pairs.par_iter().map(|pair| *pair as u32).collect();
        context
            .queue
            .write_buffer(order, 0, bytemuck::cast_slice(&places));
        Ok(())
    }
}

fn refused(error: lampshade::Error) -> Error {
    Error::Device(format!("the sort refused its buffers: {error}"))
}
