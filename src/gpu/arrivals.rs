//! Arrivals of spreads on the GPU: one float a splat, in pages as the splats lie. Only chunks that have
//! changed are sent.
//!
//! What an arrival is, [`crate::effect::spread`] says.

use super::Context;
use super::layouts::words_buffer;
use crate::effect::spread::{Arrivals, CHUNK_ROWS};
use std::sync::{Arc, Weak};

/// Arrivals of one spread.
struct Resident {
    identity: Weak<()>,
    page_rows: Vec<u32>,
    pages: Vec<wgpu::Buffer>,
    /// What lies in the buffers.
    sent: Vec<Arc<Vec<f32>>>,
}

/// Arrivals of all spreads.
#[derive(Default)]
pub struct AllArrivals {
    residents: Vec<Resident>,
}

impl AllArrivals {
    /// Brings arrivals up to date and returns their number. `page_rows` are rows of the pages that the
    /// splats lie in.
    pub fn send(&mut self, context: &Context, arrivals: &Arrivals, page_rows: &[u32]) -> usize {
        let known = self.residents.iter().position(|r| {
            std::ptr::eq(r.identity.as_ptr(), Arc::as_ptr(arrivals.identity()))
                && r.page_rows == page_rows
        });
        let index = known.unwrap_or_else(|| {
            let buffer = |rows: &u32| {
                let usage = wgpu::BufferUsages::COPY_DST;
                words_buffer(&context.device, "arrivals", u64::from(*rows), usage)
            };
            self.residents.push(Resident {
                identity: Arc::downgrade(arrivals.identity()),
                page_rows: page_rows.to_vec(),
                pages: page_rows.iter().map(buffer).collect(),
                sent: Vec::new(),
            });
            self.residents.len() - 1
        });
        let resident = &mut self.residents[index];
        for (k, chunk) in arrivals.chunks().iter().enumerate() {
            if resident
                .sent
                .get(k)
                .is_some_and(|old| Arc::ptr_eq(old, chunk))
            {
                continue;
            }
            // A chunk may lie on both sides of a page's end.
            let (begin, end) = (k * CHUNK_ROWS, k * CHUNK_ROWS + chunk.len());
            let mut page_begin = 0;
            for (rows, buffer) in page_rows.iter().zip(&resident.pages) {
                let page_end = page_begin + *rows as usize;
                let (from, to) = (begin.max(page_begin), end.min(page_end));
                if from < to {
                    let floats = &chunk[from - begin..to - begin];
                    let at = (from - page_begin) as u64 * 4;
                    context
                        .queue
                        .write_buffer(buffer, at, bytemuck::cast_slice(floats));
                }
                page_begin = page_end;
            }
        }
        resident.sent = arrivals.chunks().to_vec();
        index
    }

    /// Arrivals of one page.
    pub fn page(&self, index: usize, page: usize) -> &wgpu::Buffer {
        &self.residents[index].pages[page]
    }

    /// Frees arrivals that nobody holds any more.
    pub fn release_unused(&mut self) {
        self.residents.retain(|r| r.identity.strong_count() > 0);
    }
}
