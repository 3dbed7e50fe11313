//! Packed copies of splats on the GPU, one per `Arc`, split into pages below the binding limit.
//!
//! A copy lives as long as somebody outside holds the `Arc`; [`Residency::release_unused`] frees
//! the rest, so loading one scene after the other does not pile up.

use super::layouts::{Kind, bind, layout, words_buffer};
use super::uniforms::GROUP;
use super::{Context, Error, Packing, pack};
use crate::scene::Splats;
use std::sync::{Arc, Weak};

/// One page: as many splats as one binding holds.
pub struct PageBuffers {
    /// Splats, SH, no pose and no arrivals, bound as group 1 of the front end.
    pub bindings: wgpu::BindGroup,
    splats: wgpu::Buffer,
    sh: wgpu::Buffer,
    /// Splats in it.
    pub count: u32,
}

struct Resident {
    splats: Weak<Splats>,
    pages: Vec<PageBuffers>,
}

/// All packed copies.
pub struct Residency {
    packing: Packing,
    /// Most rows of a page beside what the adapter allows.
    page_rows_max: Option<usize>,
    /// Layout of group 1 of the front end.
    pub layout: wgpu::BindGroupLayout,
    residents: Vec<Resident>,
    /// Stands where a posed draw has its posed splats, and one with a spread its arrivals.
    nothing: wgpu::Buffer,
}

/// Splats packed and sent at a time: 8 MiB, so that staging memory stays small beside the scene.
const UPLOAD_ROWS: usize = 262_144;
/// Uploads between two waits, which let wgpu give its staging memory back.
const UPLOADS_IN_FLIGHT: usize = 4;

impl Residency {
    /// An empty residency.
    pub fn new(device: &wgpu::Device, packing: Packing, page_rows_max: Option<usize>) -> Self {
        Self {
            packing,
            page_rows_max,
            layout: layout(
                device,
                "page",
                wgpu::ShaderStages::COMPUTE,
                &[Kind::Read, Kind::Read, Kind::Read, Kind::Read],
            ),
            residents: Vec::new(),
            nothing: words_buffer(device, "nothing", 8, wgpu::BufferUsages::empty()),
        }
    }

    /// Makes sure that `splats` are on the GPU and returns their pages.
    ///
    /// # Errors
    /// The device ran out of memory.
    pub fn pages(
        &mut self,
        context: &Context,
        splats: &Arc<Splats>,
    ) -> Result<&[PageBuffers], Error> {
        let found = self
            .residents
            .iter()
            .position(|r| std::ptr::eq(r.splats.as_ptr(), Arc::as_ptr(splats)));
        let index = match found {
            Some(index) => index,
            None => {
                let pages = self.upload(context, splats)?;
                self.residents.push(Resident {
                    splats: Arc::downgrade(splats),
                    pages,
                });
                self.residents.len() - 1
            }
        };
        Ok(&self.residents[index].pages)
    }

    /// The pages of splats that [`Residency::pages`] has made resident; none before.
    pub fn resident(&self, splats: &Arc<Splats>) -> &[PageBuffers] {
        self.residents
            .iter()
            .find(|r| std::ptr::eq(r.splats.as_ptr(), Arc::as_ptr(splats)))
            .map_or(&[], |r| &r.pages)
    }

    /// Group 1 of the front end for a page whose posed splats lie in `posed`.
    pub fn bind_posed(
        &self,
        device: &wgpu::Device,
        page: &PageBuffers,
        posed: &wgpu::Buffer,
    ) -> wgpu::BindGroup {
        self.bind_page(device, [&page.splats, &page.sh, posed, &self.nothing])
    }

    /// Group 1 of the front end for a page whose arrivals lie in `arrivals`, and its posed splats in
    /// `posed` where there is a pose.
    pub fn bind_arrivals(
        &self,
        device: &wgpu::Device,
        page: &PageBuffers,
        posed: Option<&wgpu::Buffer>,
        arrivals: &wgpu::Buffer,
    ) -> wgpu::BindGroup {
        let posed = posed.unwrap_or(&self.nothing);
        self.bind_page(device, [&page.splats, &page.sh, posed, arrivals])
    }

    fn bind_page(&self, device: &wgpu::Device, buffers: [&wgpu::Buffer; 4]) -> wgpu::BindGroup {
        bind(
            device,
            &self.layout,
            &buffers.map(wgpu::Buffer::as_entire_binding),
        )
    }

    /// Frees the copies of splats that nobody holds any more.
    pub fn release_unused(&mut self) {
        self.residents.retain(|r| r.splats.strong_count() > 0);
    }

    /// Splats of `sh_degree` that fit one binding, a whole number of workgroups.
    fn page_rows(&self, limits: &wgpu::Limits, sh_degree: u8) -> usize {
        let words = pack::splat_words(self.packing).max(pack::sh_words(self.packing, sh_degree));
        let bytes = limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size);
        // 65,535 workgroups of 256 are the most that one dimension of a dispatch takes.
        let most = (bytes / (words as u64 * 4)).min(65_535 * u64::from(GROUP)) as usize;
        let most = most.min(self.page_rows_max.unwrap_or(most));
        (most / GROUP as usize).max(1) * GROUP as usize
    }

    fn upload(&self, context: &Context, splats: &Splats) -> Result<Vec<PageBuffers>, Error> {
        let Context { device, queue, .. } = context;
        let scope = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let rows = self.page_rows(&device.limits(), splats.sh_degree);
        let (words, sh_words) = (
            pack::splat_words(self.packing),
            pack::sh_words(self.packing, splats.sh_degree),
        );
        let mut pages = Vec::new();
        let mut uploads = 0;
        for first in (0..splats.len()).step_by(rows) {
            let count = rows.min(splats.len() - first);
            let buffer = words_buffer(
                device,
                "splats",
                (count * words) as u64,
                wgpu::BufferUsages::COPY_DST,
            );
            let sh = words_buffer(
                device,
                "sh",
                (count * sh_words) as u64,
                wgpu::BufferUsages::COPY_DST,
            );
            for start in (0..count).step_by(UPLOAD_ROWS) {
                let n = UPLOAD_ROWS.min(count - start);
                let packed = pack::pack(splats, self.packing, first + start, n);
                queue.write_buffer(
                    &buffer,
                    (start * words * 4) as u64,
                    bytemuck::cast_slice(&packed),
                );
                let packed = pack::pack_sh(splats, self.packing, first + start, n);
                queue.write_buffer(
                    &sh,
                    (start * sh_words * 4) as u64,
                    bytemuck::cast_slice(&packed),
                );
                queue.submit([]);
                uploads += 1;
                if uploads % UPLOADS_IN_FLIGHT == 0 {
                    super::wait(device)?;
                }
            }
            pages.push(PageBuffers {
                bindings: self.bind_page(device, [&buffer, &sh, &self.nothing, &self.nothing]),
                splats: buffer,
                sh,
                count: count as u32,
            });
        }
        super::wait(device)?;
        match pollster::block_on(scope.pop()) {
            Some(error) => Err(Error::Device(format!(
                "{} splats do not fit the graphics memory: {error}",
                splats.len()
            ))),
            None => Ok(pages),
        }
    }
}
