//! The only place that knows wgpu. (Signatures others may code against; the body is being written.)

use crate::frame::Frame;

/// Device, queue and what they can do.
pub struct Context {
    pub instance: wgpu::Instance,
    pub adapter: wgpu::Adapter,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub info: wgpu::AdapterInfo,
}

impl Context {
    /// For files: no window. `adapter_index` is `--gpu N`, an index into [`Context::adapters`].
    pub fn headless(_adapter_index: Option<usize>) -> Result<Self, Error> {
        todo!()
    }
    /// For a window: an adapter that can present to `surface`.
    pub fn for_surface(
        _instance: wgpu::Instance,
        _surface: &wgpu::Surface<'_>,
        _adapter_index: Option<usize>,
    ) -> Result<Self, Error> {
        todo!()
    }
    /// Everything wgpu finds on this machine, for `doctor` and `--gpu N`.
    pub fn adapters() -> Vec<wgpu::AdapterInfo> {
        todo!()
    }
    /// The instance that both constructors use.
    pub fn instance() -> wgpu::Instance {
        todo!()
    }
    /// True once the device was lost; the caller rebuilds context and renderer.
    pub fn is_lost(&self) -> bool {
        todo!()
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("no graphics adapter: {0}")]
    NoAdapter(String),
    /// `message` starts with `file:line:` of the author's WGSL.
    #[error("{message}")]
    Shader { message: String },
    #[error("{0}")]
    Device(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RasterMethod {
    Quads,
    Tiles,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Packing {
    #[default]
    Packed,
    Float,
}

/// WGSL texts by file name; the default is the embedded set, `from_dir` overlays files on disk.
#[derive(Clone, Debug, Default)]
pub struct ShaderSource {}
impl ShaderSource {
    pub fn from_dir(_dir: &std::path::Path) -> std::io::Result<Self> {
        todo!()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// None: by adapter type (CPU adapter: quads, else tiles).
    pub raster: Option<RasterMethod>,
    pub packing: Packing,
    pub shaders: ShaderSource,
}

/// What one picture cost. GPU times are known one frame late when drawing to a window.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Splats in the frame's draws.
    pub count: u64,
    /// Splats that survived culling and were sorted.
    pub sorted: u64,
    /// (stage, ms) by timestamp queries, in order; empty where the adapter has none.
    pub stages: Vec<(&'static str, f64)>,
    /// Sum over the stages.
    pub gpu_ms: Option<f64>,
}

/// 8-bit RGBA, straight alpha, rows top to bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub size: [u32; 2],
    pub rgba: Vec<u8>,
}

pub struct Renderer {}

impl Renderer {
    pub fn new(_context: &Context, _settings: &Settings) -> Result<Self, Error> {
        todo!()
    }
    pub fn raster(&self) -> RasterMethod {
        todo!()
    }
    /// Records, submits; the picture lands in `target` (a non-sRGB view of `format`).
    pub fn draw(
        &mut self,
        _context: &Context,
        _frame: &Frame,
        _size: [u32; 2],
        _target: &wgpu::TextureView,
        _format: wgpu::TextureFormat,
    ) -> Result<Stats, Error> {
        todo!()
    }
    /// Draws and reads back.
    pub fn picture(
        &mut self,
        _context: &Context,
        _frame: &Frame,
        _size: [u32; 2],
    ) -> Result<(Picture, Stats), Error> {
        todo!()
    }
    /// Swaps in new shaders if all of them validate and build; else keeps the old and says why.
    pub fn set_shaders(
        &mut self,
        _context: &Context,
        _shaders: &ShaderSource,
    ) -> Result<(), Error> {
        todo!()
    }
    /// Forgets packed copies of splats that nobody else holds.
    pub fn release_unused(&mut self) {
        todo!()
    }
    /// Bytes of GPU memory per splat in the current packing (without SH, with SH of each degree 1..3).
    pub fn bytes_per_splat(&self, _sh_degree: u8) -> u64 {
        todo!()
    }
}
