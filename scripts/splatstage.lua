---@meta splatstage
-- What splatstage gives to scenes, for lua-language-server and other tools that read its annotations:
-- `splatstage api --format lua` prints it. Do not edit. Scenes are Luau: tools for Lua understand a part.

---@class vector
---@field x number
---@field y number
---@field z number
---@operator add(vector): vector
---@operator sub(vector): vector
---@operator mul(number|vector): vector
---@operator div(number|vector): vector
---@operator unm: vector
vector = {}
---@type vector
vector.zero = nil
---@type vector
vector.one = nil
---@param x number
---@param y number
---@param z? number
---@return vector
function vector.create(x, y, z) end
---@param v vector
---@return number
function vector.magnitude(v) end
---@param v vector
---@return vector
function vector.normalize(v) end
---@param a vector
---@param b vector
---@return vector
function vector.cross(a, b) end
---@param a vector
---@param b vector
---@return number
function vector.dot(a, b) end

---@class buffer

---@alias Colour string|vector|number[]
---@alias Rotation Euler|number[]

---A picture. Without `draws` every visible asset is drawn where its handle says; without `camera` here or in the scene's table, the camera sees what is drawn whole.
---@class Frame
---@field camera? Camera From where (default the scene's, or one that sees all)
---@field background? Colour Behind everything (default the scene's, or near black)
---@field state? string What is going on, for `trace` (default none)
---@field draws? (Handle|Draw)[] What is drawn (default all that is visible)
---@field walker? Walker Who carries the camera, for `trace` (default none)
---@field film? (Film|boolean) How it is filmed; true for the default, false for not at all (default the scene's)

---From where to look: by a target, by angles or by a rotation.
---@class Camera
---@field position vector Where it stands (metres)
---@field target? vector What it looks at; instead of angles (metres; default none)
---@field up? vector What is up in the picture; with a target (direction; default +y)
---@field yaw? number Turned to the left, from -z (degrees; default 0)
---@field pitch? number Turned up (degrees; default 0)
---@field roll? number Turned clockwise (degrees; default 0)
---@field rotation? Rotation Instead of target and angles (default none)
---@field fov? number What the lens sees from bottom to top (degrees; 0.1 to 179; default 60)

---An asset in one picture. What is left out is the handle's own.
---@class Draw
---@field splats Handle Which asset
---@field position? vector Where (metres; default the handle's)
---@field rotation? Rotation How turned (default the handle's)
---@field scale? number How large (times; above 0; default the handle's)
---@field tint? Colour Factor of the colour, up to 16, and of opacity (default the handle's)
---@field visible? boolean Whether it is drawn (default the handle's)
---@field pickable? boolean Whether the pointer meets it (default the handle's)
---@field effects? (Effect|EffectUse)[] What changes its splats, one after the other; up to four (default the handle's)

---Who carries the camera.
---@class Walker
---@field speed number Along the way (metres a second)
---@field phase number Steps taken: a whole number at every heel strike (steps)
---@field floor number Height of the ground underfoot (metres)
---@field clearance? number From the camera to the nearest wall (metres; default nobody has measured)
---@field head_yaw number The head against the heading, left positive (degrees)
---@field head_pitch number The head, up positive (degrees)

---How a phone films the picture. The camera is then asked for at both ends of the shutter too.
---@class Film
---@field exposure? number How long each row is open (seconds; 0 to 0.5; default 1/80)
---@field readout? number From the first row to the last (seconds; 0 to 0.5; default 0.016)
---@field direction? ("down"|"up"|"left"|"right") Which way rows are read (default `down`)
---@field overscan? number How much larger it is drawn than it is (times; 1 to 2; default 1.1)
---@field depth? ("two_layers"|"one_layer"|"proxy") Where depth comes from (default `two_layers`)
---@field planes? Plane[] What `proxy` takes for the world, up to eight (default none)
---@field jitter? boolean Moves the instants of each pixel by chance (default false)
---@field stops? number Light, as a power of two (stops; -12 to 12; default 0)
---@field balance? number[] Factors of red, green and blue (0 to 16) (default {1, 1, 1})
---@field focus? number What is sharp (metres; 0.01 to 1e6; default 2)
---@field aperture? number Diameter of the opening; 0 is a pinhole (metres; 0 to 0.1; default 0)
---@field distortion? number Above 0 barrel, below 0 pincushion (share; -0.3 to 0.3; default 0)
---@field aberration? number How much larger red is than green (share; -0.02 to 0.02; default 0)
---@field falloff? number Light that corners lose (share; 0 to 0.95; default 0)
---@field halation? Halation Glow round highlights (default none)
---@field sharpen? number Overshoot at edges (share; 0 to 4; default 0)
---@field shoulder? number Highlights are rolled off above 1 less this (linear light; 0 to 1; default 0)
---@field noise? Noise Grain (default none)

---A plane of a film's `planes`.
---@class Plane
---@field point vector On it (metres)
---@field normal vector Out of it (direction)

---Glow round highlights.
---@class Halation
---@field strength? number How much (share; 0 to 4; default 0)
---@field radius? number How far (picture heights; 0 to 0.12; default 0.02)
---@field threshold? number From where on (linear light; 0 to 100; default 0.8)

---Grain: its variance at light x is `shot` x + `read`.
---@class Noise
---@field shot? number With the light (variance; 0 to 1; default 0)
---@field read? number Everywhere (variance; 0 to 1; default 0)

---Something that happens at an instant. Other fields are the author's own, plain data.
---@class Cue
---@field t number When: `from` or later, before `to` (seconds)
---@field kind string What happens, such as `footstep`
---@field [string] any

---What hands do. Flat vectors have z = 0.
---@class Input
---@field pointer vector On the picture: x right, y up (-1 to 1)
---@field pointer_inside boolean Whether the pointer is over the picture
---@field over? Handle The asset that the pointer is over
---@field stick vector The left stick of a gamepad (-1 to 1)
---@field gyro? vector How a phone is turned about x, y, z (degrees)
---@field drag vector What the pointer travelled, in the first step of a picture (picture heights)
---@field wheel number Away from the person, in the first step of a picture (notches)
---@field held table<string, boolean> Keys and buttons: `input.held.arrow_up`, `input.held.mouse_left`
---@field aspect number Width over height of the picture

---Something that happened once.
---@class Event
---@field kind string `hover`, `leave`, `click`, `double_click`, `pointer_enter`, `pointer_leave`, `key`, `resize`, `message`, `error`
---@field name string The key, button or message; or empty
---@field values number[] Numbers that come with it
---@field x? number The first of them
---@field y? number The second of them
---@field target? Handle The asset that it is about
---@field splat? number The number of the splat that was met, from 1, of clicks

---How a file of splats is read.
---@class SplatsOptions
---@field level? number Level of detail of a file that has several; 0 is the finest (whole, 0 to 64; default the finest)
---@field axes? string Which way the file's axes point, such as `RDF`, `y-up`, `z-up` (default what the format or the file says)
---@field args? any For a built-in scene: what its script finds in `stage.args` (default nothing)

---Splats in columns: a buffer of f32, a list with an entry for each, or one value for all.
---@class GenerateOptions
---@field positions (buffer|vector[]) Centres (metres): how many there are says how many splats
---@field scales (buffer|vector[]|vector|number) Standard deviations along the own axes (metres), above 0
---@field colours (buffer|vector[]|vector|number) Display-space red, green, blue (0 to 1)
---@field opacities? (buffer|number[]|number) 0 to 1 (default 1)
---@field rotations? (buffer|number[][]) Quaternions x, y, z, w (default none is turned)
---@field sh? (buffer|number[]) Further spherical harmonics: 9, 24 or 45 floats a splat, coefficient by coefficient, red, green, blue in each (default none)
---@field name? string What the handle is called (default `generated`)

---Where to stand to see a thing whole.
---@class Framing
---@field centre vector The middle of what is framed (metres)
---@field radius number Of a ball round it (metres)
---@field eye vector In front (+z) and a little above, where a lens of 60 degrees sees it whole (metres)
---@field target vector The centre again: the table is a camera (metres)

---How fine a probe is.
---@class ProbeOptions
---@field cell? number Side of its cells (metres; 0.01 to 10; default 0.05)

---How fine a spread is.
---@class SpreadOptions
---@field cell? number Side of its cells (metres; 0.0001 to 10000; default by the splats' sizes)

---An effect, first in the table, and values for it by their names in its `struct Uniforms`: numbers, true or false, vectors, colours, lists of numbers.
---@class EffectUse
---@field [integer] Effect
---@field [string] any

---What a parameter can stand at. `min`, `max` and `step` are for numbers, `choices` for texts.
---@class ParamOptions
---@field min? number Least (default none)
---@field max? number Largest, above `min` (default none)
---@field step? number Values are whole multiples of it, from `min` on (above 0; default none)
---@field unit? string As it is shown: `Hz`, `m` (default none)
---@field help? string A sentence for who turns it (default none)
---@field choices? string[] What a text can be, up to 64 (default any text)

---What moves generated splats.
---@class RigOptions
---@field bones? RigBone[] Parents before children (default none)
---@field weights? table<string, (fun(position: vector, i: number): number)|buffer|number[]> By the bone's name: how much each splat follows it; asked for each (nil is 0), or for all at once (default none)
---@field shapes? (RigShape[]|table<string, (fun(position: vector, i: number): vector)|buffer|vector[]>) Blendshapes: a list, or offsets by name (default none)

---A bone that a generated body has.
---@class RigBone
---@field name string What it is called
---@field parent? string A bone before it in the list (default none)
---@field position vector Where it turns, at rest (metres)

---A blendshape that a generated body has.
---@class RigShape
---@field name string What it is called
---@field offset ((fun(position: vector, i: number): vector)|buffer|vector[]) How far each splat moves (metres) at a value of 1: asked for each, or for all at once

---A surface that runs straight between the points of a grid, and the splats that are scattered on it.
---@class SheetOptions
---@field points (buffer|vector[]) Row by row (metres), two rows or more
---@field across number Points in a row (whole, 2 or more)
---@field count number Splats (whole, 0 to 5e7)
---@field texture? Texture Colour and gloss (default white)
---@field texture_from? number[] {u, v} at the first point (default {0, 0})
---@field texture_to? number[] {u, v} at the last point; the picture repeats beyond 0 to 1 (default {1, 1})
---@field light? (buffer|vector[]) Factors of the display-space colour (0 to 16), row by row (default 1)
---@field light_across? number Of `light` in a row; needed with it (whole, 1 or more; default none)
---@field light_from? number[] {u, v} at the first point (default {0, 0})
---@field light_to? number[] {u, v} at the last point (default {1, 1})
---@field tint? Colour Factor of the colour, up to 16 (default white)
---@field stretch? number Width over height of a splat's cell (0.01 to 100; default 1)
---@field jitter? number How far splats stand off a grid, in cells (0 to 1; default 0.2)
---@field overlap? number Standard deviation over distance (0.05 to 10; default 0.7)
---@field thickness? number Standard deviation across the surface (metres; above 0; default 0.003)
---@field opacity? number Of each splat (0 to 1; default 0.99)
---@field variation? number Of brightness from splat to splat, a share (0 to 1; default 0)
---@field depth? number How far splats stand off the surface (metres; 0 to 1e6; default 0)
---@field tilt? number How far they are turned out of it (degrees; 0 to 180; default 0)
---@field gloss? Gloss[] Up to four lights that it mirrors; the builder needs a degree above 0 (default none)
---@field seed? number Of chance (default the scene's and the number of the sheet)

---A light that a sheet mirrors, as spherical harmonics.
---@class Gloss
---@field direction vector Towards the light (direction)
---@field colour Colour Its colour, up to 16
---@field sharpness? number How narrow its mirror image is (0.1 to 20; default 4)

---A solid, and what it does to the splats inside.
---@class EditOptions
---@field shape ("sphere"|"box"|"ellipsoid"|"plane"|"capsule") The solid. A sphere has `radius`, a box `half`, an ellipsoid `radii`, a capsule `radius` and `half_length`; a plane takes what is below it
---@field bone? string What carries it (default the asset itself)
---@field radius? number Of a sphere or capsule (metres; above 0; default none, of others)
---@field half? vector Half the sides of a box, above 0 (metres; default none, of others)
---@field radii? vector Of an ellipsoid, above 0 (metres; default none, of others)
---@field half_length? number From the middle of a capsule to the middle of its caps (metres; 0 to 1e6; default none, of others)
---@field opacity? number Factor of opacity (0 to 1; default 1)
---@field tint? Colour Factor of the colour, up to 16 (default white)
---@field displace? vector How far splats are moved (metres; default none)
---@field centre? vector The middle of the solid (metres; default the origin)
---@field rotation? Rotation How it is turned; read as a quaternion (default none)
---@field soft_edge? number How wide its edge is (metres; 0 to 1e6; default 0)
---@field inverted? boolean Whether it takes what is outside (default false)
---@field enabled? boolean Whether it does anything (default true)

---A bone that the file does not have, with weights that fall off around it.
---@class BoneOptions
---@field name string What it is called
---@field parent? string A bone that carries it (default none)
---@field position vector Where it turns, at rest (metres)
---@field sigma (number|vector) How far it reaches: the widths of a Gaussian (metres), above 0
---@field gain? number Factor of its weight (0 to 1000; default 1)
---@field floor? number Weights up to this are none (0 to 1000; default 0)
---@field skip? Condition[][] Splats for which all conditions of any group hold are left out (default none)

---Something that may hold for a splat; all that is named must.
---@class Condition
---@field bones? string[] Whose largest weight is looked at (default none)
---@field above? number The weight is above it (weight; default anything)
---@field below? number The weight is below it (weight; default anything)
---@field below_y? number The splat is below it (metres; default anything)

---A blendshape that the file does not have.
---@class ShapeOptions
---@field name string What it is called
---@field bumps Bump[] What it does at a value of 1; up to 64

---How splats around a point move.
---@class Bump
---@field centre vector The point (metres)
---@field sigma (number|vector) How far it reaches: the widths of a Gaussian (metres), above 0
---@field offset vector How far the point moves (metres)

---A spring's way from one value to another: all numbers, or all vectors.
---@class SpringOptions
---@field from? (number|vector) Where it begins (default 0)
---@field to? (number|vector) Where it comes to rest (default 1)
---@field velocity? (number|vector) At the beginning, a second (default 0)
---@field frequency? number Swings a second without damping (Hz; above 0; default 1)
---@field damping? number 1 comes to rest soonest, below it swings, above it creeps (ratio; 0 to 100; default 1)

---The points of a curve, in order (metres).
---@class SplineOptions
---@field closed? boolean Whether it ends where it began (default false)
---@field [integer] vector

---A group of voices.
---@class BusOptions
---@field gain_db? number Louder or softer (dB; -120 to 40; default 0)
---@field mic? boolean Whether it goes through the microphone (default true)

---What everything is heard through. Where no default is said, it is the preset's.
---@class Microphone
---@field preset? ("phone"|"old_phone"|"call") What it begins as (default `phone`)
---@field low_hz? number What is below is cut (Hz; 20 to 1000; default the preset's)
---@field high_hz? number What is above is cut (Hz; 1000 to 20000; default the preset's)
---@field width? number 0 is mono, 1 as wide as the ears (0 to 1; default the preset's)
---@field noise_db? number Of its own (dBFS; -200 to 0; default the preset's)
---@field wind_db? number At 1 m/s of air (dBFS; -200 to 0; default the preset's)
---@field handling_db? number At 1 m/s² of shaking (dBFS; -200 to 0; default the preset's)
---@field gain? (AutomaticGain|false) Automatic gain; false for none (default the preset's)
---@field compressor? (Compressor|false) A compressor; false for none (default the preset's)

---How a microphone finds its level.
---@class AutomaticGain
---@field aim_db? number The level it aims at (dBFS; -60 to 0; default the preset's)
---@field boost_db? number How much louder it makes things at most (dB; 0 to 60; default the preset's)
---@field cut_db? number How much softer it makes things at most (dB; 0 to 60; default the preset's)

---How loud moments are held down.
---@class Compressor
---@field threshold_db? number Above it (dBFS; -60 to 0; default the preset's)
---@field ratio? number Decibels in for one out (1 to 20; default the preset's)
---@field makeup_db? number Everything is louder by this (dB; 0 to 20; default the preset's)

---Something that sounds: one source, its shape in time, filters, a place. It has exactly one of `noise`, `clicks`, `impulse`, `tone`, `clip`, `grains`; `position` or `pan` or neither (all around).
---@class Voice
---@field t? number When it begins; in beds it may be left out (seconds; -1e6 to 1e7; default 0, in beds)
---@field noise? ("white"|"pink"|"brown"|"blue"|"violet") Noise of -20 dBFS (default none)
---@field clicks? number Single samples by chance (clicks a second; 0.01 to 8000; default none)
---@field impulse? boolean True: one sample, for filters to ring (default none)
---@field tone? Tone A tone and its partials (default none)
---@field clip? (Clip|ClipSource) A sound file (default none)
---@field grains? Grains A sound file in pieces by chance, without end (default none)
---@field bus? string The group that it is in (default `main`)
---@field gain_db? number Louder or softer (dB; -120 to 40; default 0)
---@field levels? number[][] {t, db} in order: louder and softer by the scene's time (seconds, dB) (default none)
---@field attack? number From nothing to full (seconds; 0 to 3600; default 0)
---@field hold? number At full (seconds; 0 to 3600; default 0)
---@field decay? number From full to -60 dB (seconds; 0.0001 to 3600; default it stays)
---@field filters? (Filter|Ringing)[] One after the other (default none)
---@field wander? Wander A level that drifts (default none)
---@field position? vector Where it is (metres; default all around)
---@field reference? number Where it is as loud as it says; with a position (metres; 0.01 to 10000; default 1)
---@field rolloff? number 1: by the inverse of the distance; with a position (0 to 4; default 1)
---@field pan? number -1 left, 1 right (-1 to 1; default all around)
---@field fade_in? number At its beginning (seconds; 0 to 3600; default 0)
---@field fade_out? number At its end (seconds; 0 to 3600; default 0)
---@field duration? number After this it ends (seconds; 0 to 1e7; default as its source and decay say)
---@field seed? number Of chance (-9.007e15 or more; default 0)

---A tone.
---@class Tone
---@field hz number Its pitch (Hz; 1 to 20000)
---@field partials? number[] Strengths of its 1st, 2nd, 3rd, ... partial (-10 to 10) (default {1})

---A sound file as a voice's source.
---@class ClipSource
---@field clip Clip A clip of `sound.clip`
---@field from? number Where in the file it begins (seconds; 0 to 1e6; default 0)
---@field speed? number 2 is an octave higher (0.25 to 4; default 1)
---@field loop? boolean Whether it begins again at its end (default false)

---A sound file in pieces by chance.
---@class Grains
---@field clip Clip A clip of `sound.clip`
---@field grain? number Length of a piece (seconds; 0.01 to 8; default 0.5)

---A level that drifts by chance.
---@class Wander
---@field depth_db number How far (dB; 0 to 40)
---@field rate_hz number How fast (Hz; 0.001 to 20)

---A filter; `peak`, `low_shelf` and `high_shelf` need `gain_db`.
---@class Filter
---@field kind ("low_pass"|"high_pass"|"band_pass"|"peak"|"low_shelf"|"high_shelf") What it does
---@field hz number Where (Hz; 10 to 22000)
---@field q? number How narrow (0.1 to 30; default 0.71 of passes, 1 of `band_pass` and `peak`)
---@field gain_db? number How much (dB; -60 to 40; default none, of passes)

---A filter that is a list of what rings in it.
---@class Ringing
---@field kind "modes" `modes`
---@field [integer] Mode

---Something that rings.
---@class Mode
---@field hz number Its pitch (Hz; 10 to 22000)
---@field t60 number How long it rings, to -60 dB (seconds; 0.001 to 6)
---@field gain_db? number How strong (dB; -60 to 40; default 0)

---Who hears: a camera, the air and the hands.
---@class Ears
---@field position vector Where it stands (metres)
---@field target? vector What it looks at; instead of angles (metres; default none)
---@field up? vector What is up in the picture; with a target (direction; default +y)
---@field yaw? number Turned to the left, from -z (degrees; default 0)
---@field pitch? number Turned up (degrees; default 0)
---@field roll? number Turned clockwise (degrees; default 0)
---@field rotation? Rotation Instead of target and angles (default none)
---@field fov? number What the lens sees from bottom to top (degrees; 0.1 to 179; default 60)
---@field wind? number Air over the microphone (metres a second; 0 to 50; default 0)
---@field shake? number Of the hands (metres a second squared; 0 to 100; default 0)

---A rotation: yaw, then pitch, then roll, with the signs of a camera.
---@class Euler
---@field yaw? number To the left (degrees; default 0)
---@field pitch? number Up (degrees; default 0)
---@field roll? number Clockwise (degrees; default 0)

---A picture of a test.
---@class PictureOptions
---@field size? number[] Width and height, px (default {320, 180})

---An asset of the scene: what to draw, where and how. Two handles of one asset are equal.
---@class Handle
---@field name string The file's, or what it was made under
---@field count number Splats
---@field position vector Where it stands (metres)
---@field rotation Rotation How it is turned; read as a quaternion
---@field scale number How large it is (times; above 0)
---@field tint Colour Factor of the colour, up to 16, and of opacity; read as a list of four
---@field visible boolean Whether it is drawn
---@field pickable boolean Whether the pointer meets it; at first true for avatars
---@field bones string[] Names of its bones
---@field shapes string[] Names of its blendshapes
---@field states? any What an avatar's file says of states
---@field manifest? any What an avatar's file says of itself
---@field asset_type? string `head`, `body` or `object`, of an avatar
---@field effects? (Effect|EffectUse)[] What changes its splats, one after the other; up to four (default none)
---@field pivot ("joint"|"origin") What bones turn around
local Handle = {}
---The bone of this name, or nil.
---@param name string One of `bones`
---@return Bone? bone To turn and move it
function Handle:bone(name) end
---The value of a blendshape.
---@param name string One of `shapes`
---@return number value 0 at rest
function Handle:shape(name) end
---Sets the value of a blendshape.
---@param name string One of `shapes`
---@param value number 0 at rest, 1 as it was made (-16 to 16)
function Handle:set_shape(name, value) end
---Sets several at once.
---@param values table<string, number> Values by name (-16 to 16)
function Handle:set_shapes(values) end
---Gives it a bone that the file does not have. While loading only.
---@param bone BoneOptions Where it is and what it carries
---@return Bone bone The new one
function Handle:add_bone(bone) end
---Gives it a blendshape that the file does not have. While loading only.
---@param shape ShapeOptions What moves, and how far
function Handle:add_shape(shape) end
---Hides, tints or moves the splats in a solid. While loading only.
---@param edit EditOptions The solid, and what it does
---@return Edit edit To change it at any time
function Handle:edit(edit) end

---WGSL that changes each splat before it is drawn, of `stage.effect`.
---@class Effect
---@field file string The file's name
---@field uniforms string[] Names of its values
local Effect = {}

---A wave along the splats of a handle, of `stage.spread`.
---@class Spread
---@field cell number Side of its cells (metres)
---@field count number Cells with splats in them
---@field reached number How far it was let go (metres)
---@field done boolean Whether it has been everywhere
local Spread = {}
---Lets the wave begin at a splat; it may begin at several.
---@param splat (number|vector) Its number, from 1, or a place near it in the handle's own space (whole, 1 or more)
---@param way? number How far it has gone already (metres; 0 to 1e6; default 0)
function Spread:begin(splat, way) end
---Lets the wave go on to this way, no further than it has been let before.
---@param way number Along the splats (metres; 0 to 1e6)
function Spread:reach(way) end
---When the wave arrives at a splat: the way to it.
---@param splat (number|vector) Its number, from 1, or a place near it in the handle's own space (whole, 1 or more)
---@return number? way nil where it has not arrived (metres)
function Spread:at(splat) end

---A bone of an asset.
---@class Bone
---@field name string What it is called
---@field parent? string The bone that carries it
---@field rest vector Where it turns, at rest (metres)
---@field rotation Rotation How it is turned against rest; read as a quaternion
---@field move vector How far it is moved from rest (metres)
local Bone = {}
---Sets its rotation: about x, then y, then z.
---@param x? number About x (degrees; default 0)
---@param y? number About y (degrees; default 0)
---@param z? number About z (degrees; default 0)
function Bone:turn(x, y, z) end

---What `handle:edit` made.
---@class Edit
---@field opacity number Factor of opacity (0 to 1)
---@field tint Colour Factor of the colour, up to 16
---@field displace vector How far splats are moved (metres)
---@field centre vector The middle of the solid (metres)
---@field rotation Rotation How it is turned; read as a quaternion
---@field soft_edge number How wide its edge is (metres; 0 to 1e6)
---@field inverted boolean Whether it takes what is outside
---@field enabled boolean Whether it does anything
local Edit = {}

---Splats on their way, of `stage.builder`.
---@class Builder
---@field count number Splats that it would build
local Builder = {}
---Adds one splat.
---@param position vector Its centre (metres)
---@param scale (number|vector) Standard deviations along its own axes, or one for all (metres) (above 0)
---@param colour Colour Display space, up to 4 for lamps
---@param opacity? number 0 to 1 (0 to 1; default 1)
---@param facing? (vector|Rotation) Where its own z points, or a rotation (default none)
---@param along? vector Where its own x points, as near as it goes (direction; default anywhere)
function Builder:add(position, scale, colour, opacity, facing, along) end
---Adds a surface of splats; they are made when it builds.
---@param sheet SheetOptions Points, how many splats, how they look
function Builder:sheet(sheet) end
---Makes an asset of what was added; the builder is empty then.
---@param name? string What the handle is called (default `generated`)
---@return Handle handle What to draw, and where
function Builder:build(name) end

---A picture for sheets, of `stage.texture`.
---@class Texture
---@field across number Texels in a row
---@field up number Rows
local Texture = {}

---Splats as they stood when it was made, in cells, of `stage.probe`.
---@class Probe
---@field cell number Side of a cell (metres)
---@field count number Cells with something in them
local Probe = {}
---What a ray meets: where half of the light is gone.
---@param position vector Where it begins (metres)
---@param direction vector Where it goes, longer than 0 (any length)
---@param max number How far it goes (metres; 0 to 10000)
---@return number? distance How far the thing is; nil where nothing is met (metres)
---@return number r Red of what was met; add (1 - seen) times the background
---@return number g Green
---@return number b Blue
---@return number seen The share of the light that was met
function Probe:look(position, direction, max) end
---The height of the ground under a place.
---@param position vector The place (metres)
---@return number? y nil where there is none (metres)
function Probe:ground(position) end
---How far the next wall is, at most 2 m, between two heights above a foot.
---@param position vector The foot (metres)
---@param low? number From this height (metres; -100 to 100; default 0.3)
---@param high? number To this height (metres; -100 to 100; default 1.7)
---@return number distance 0 to 2 (metres)
function Probe:clearance(position, low, high) end

---A sound file, of `sound.clip`.
---@class Clip
---@field name string The file's
---@field duration number How long it is (seconds)
---@field channels number 1 or 2
local Clip = {}

---What a clip sounds like over time, of `sound.follow`.
---@class Follower
---@field duration number How long the clip is (seconds)
local Follower = {}
---How the clip sounds at a time.
---@param t number From the clip's beginning (seconds)
---@return number level How loud (dBFS)
---@return number centre The middle of its spectrum: how bright (Hz)
---@return number low The level of what is low (dBFS)
---@return number middle The level of what is between (dBFS)
---@return number high The level of what is high (dBFS)
function Follower:at(t) end

---A spring that was let go at 0 s, of `motion.spring`.
---@class Spring
local Spring = {}
---Value and velocity at a time.
---@param t number Since it was let go (seconds; -1e9 to 1e9)
---@return (number|vector) value Where it is
---@return (number|vector) velocity How fast it goes, a second
function Spring:at(t) end

---A curve through points, of `motion.spline`.
---@class Spline
---@field length number Of the whole curve (metres)
local Spline = {}
---The place at a share of the length.
---@param u number The share; held at the ends, or round again where it is closed (0 to 1)
---@return vector place The place (metres)
function Spline:at(u) end
---The direction at a share of the length.
---@param u number The share (0 to 1)
---@return vector direction Along the curve (length 1)
function Spline:tangent(u) end

---Values at an even rate, of `motion.track`.
---@class Track
---@field duration number From the first sample to the last (seconds)
local Track = {}
---The value at a time, between samples on a smooth curve: a number or a vector, or a number for each lane of a buffer.
---@param t number The first and last values hold beyond the ends (seconds)
---@return (number|vector) value The value; of a buffer's track as many as it has lanes
function Track:at(t) end

---The scene that is tested, from its beginning.
---@class TestedScene
---@field duration number How long it is (seconds)
local TestedScene = {}
---What it shows at a time, as `trace` prints it.
---@param t number When (seconds)
---@return any frame Camera, state, walker, film; vectors for places
function TestedScene:frame(t) end
---What happens in a time.
---@param from number At this time or later (seconds)
---@param to number Before this time (seconds)
---@return Cue[] cues In order
function TestedScene:cues(from, to) end
---Something comes in.
---@param line any A line of an input log as a table, or the name of a log beside the scene
function TestedScene:input(line) end
---The picture at a time, for `looks_like`.
---@param t number When (seconds)
---@param options? PictureOptions How large (default 320 by 180)
---@return any picture For `expect`
function TestedScene:picture(t, options) end

---What a scene is made of. `load(stage)` gets it too.
---@class Stage
---@field args any What was handed over by `--arg name=value`; read-only
---@field seed number What `--seed` says; `math.random` follows it
---@field loop? number After this the pictures repeat; nil where they do not (seconds)
---@field aspect number Width over height of the first picture
---@field reduced_motion boolean The person asked for less motion
---@field heard_only boolean Only a sound file is asked for: a scene with `ears` may leave out what is only seen
stage = {}
---Loads a file of splats, or an avatar; or, by `@name`, all that a built-in scene draws in its first picture. While loading only.
---@param path string Relative to the scene's folder
---@param options? SplatsOptions How to read it (default as the file says)
---@return Handle handle What to draw, and where
function stage.splats(path, options) end
---Makes splats from columns. While loading only.
---@param columns GenerateOptions Columns of the splats
---@return Handle handle What to draw, and where
function stage.generate(columns) end
---Makes splats one by one, and surfaces of them. While loading only.
---@param capacity? number Splats that will be added one by one; it grows by itself (whole, 0 to 4e6; default 0)
---@param degree? number Of spherical harmonics (whole, 0 to 3; default 0)
---@return Builder builder Add to it, then build
function stage.builder(capacity, degree) end
---A picture for sheets. While loading only.
---@param pixels buffer Red, green, blue, gloss: four bytes a texel, row by row
---@param across number Texels in a row (whole, 1 to 4096)
---@return Texture texture For `builder:sheet`
function stage.texture(pixels, across) end
---Where to stand to see an asset, or all that is visible, whole.
---@param handle? Handle What to see (default all that is visible)
---@return Framing framing Centre, radius, eye and target
function stage.framing(handle) end
---Cells over splats as they stand now: what rays meet, where the ground is, how far walls are. While loading only.
---@param splats? (Handle|Handle[]) What to look at (default all that is visible)
---@param options? ProbeOptions How fine (default cells of 0.05 m)
---@return Probe probe It does not follow what moves later
function stage.probe(splats, options) end
---Loads an effect: WGSL that changes each splat before it is drawn, with values from Lua (`handle.effects`). While loading only.
---@param path string A `.wgsl` of the scene, or `@stage/effects/NAME` of the library
---@param defaults? table<string, number|boolean|vector|Colour|number[]> Values by the names of the file's `struct Uniforms` (default all 0)
---@return Effect effect For `handle.effects`
function stage.effect(path, defaults) end
---A wave along a handle's splats, from a touched one on: when it arrives at each is what effects see as `arrival`. A handle has one. While loading only.
---@param handle Handle What it goes along
---@param options? SpreadOptions How fine (default by the splats' sizes)
---@return Spread spread To begin it and let it go on
function stage.spread(handle, options) end
---Gives generated splats bones, weights and blendshapes. While loading only.
---@param handle Handle Splats without a body
---@param spec RigOptions Bones, weights, shapes
---@return Handle handle The same
function stage.rig(handle, spec) end
---Reads a JSON file of the scene; objects with `$vector` become vectors. While loading only.
---@param path string Relative to the scene's folder
---@return any data Read-only tables
function stage.data(path) end
---Writes a JSON file of the scene, in a window that plays a folder. While the scene plays only.
---@param path string Relative to the scene's folder, ending in `.json`
---@param data any A table of plain data
function stage.save(path, data) end

---Movement as a function of time: what is asked for any t, in any order, is the same.
---@class Motion
motion = {}
---How far something has come at `u` of its time, by a curve: `linear`, `smoothstep`, `smootherstep`, CSS's `ease`, `ease_in`, `ease_out`, `ease_in_out`, and `in_`, `out_` and `in_out_` of `sine`, `quad`, `cubic`, `quart`, `quint`, `expo`, `circ`, `back`, `elastic`, `bounce`.
---@param name string The curve
---@param u number The time gone, as a share; held at the ends beyond (0 to 1)
---@return number share 0 at 0, 1 at 1
function motion.ease(name, u) end
---CSS's `cubic-bezier(x1, y1, x2, y2)` at `u`.
---@param x1 number First handle
---@param y1 number First handle
---@param x2 number Second handle
---@param y2 number Second handle
---@param u number The time gone, as a share
---@return number share 0 at 0, 1 at 1
function motion.bezier(x1, y1, x2, y2, u) end
---Smooth noise from -1 to 1, along a line or in space: the same for the same place and seed.
---@param x (number|vector) The place: a number or a vector
---@param seed? number Another noise for another one (default 0)
---@param octaves? number How many finer noises are added (whole, 1 to 16; default 1)
---@return number value -1 to 1
function motion.noise(x, seed, octaves) end
---A spring that was let go at 0 s, asked for any time.
---@param options SpringOptions From where to where, how stiff
---@return Spring spring The spring
function motion.spring(options) end
---A spring's value and velocity after `dt` seconds: for what follows live input.
---@param value (number|vector) Where it is
---@param velocity (number|vector) How fast it goes, a second
---@param target (number|vector) Where it is drawn to
---@param frequency? number Swings a second without damping (Hz; above 0; default 1)
---@param damping? number 1 comes to rest soonest (ratio; 0 to 100; default 1)
---@param dt number The time that goes by (seconds; 0 to 1e9)
---@return (number|vector) value Where it is then
---@return (number|vector) velocity How fast it goes then, a second
function motion.spring_step(value, velocity, target, frequency, damping, dt) end
---A curve through points, at an even speed. All motion objects of a scene share a limit of numbers.
---@param points SplineOptions Two points or more, three where it is closed
---@return Spline spline The curve
function motion.spline(points) end
---Values at an even rate, asked for any time between: what a function says, called once for each sample in order, or the numbers of a buffer (little-endian f64), several a sample.
---@param rate number Samples a second (Hz; above 0)
---@param count (number|buffer) How many samples, or the buffer (whole, 1 to 2e6)
---@param sample? ((fun(t: number, i: number): (number|vector))|number) What says the value at t (seconds) of sample i (from 0); behind a buffer the numbers a sample (1) (default 1, behind a buffer)
---@return Track track The track
function motion.track(rate, count, sample) end

---What a scene is heard with. What sounds is said by the scene's `beds` and `voices`.
---@class Sound
sound = {}
---Loads a sound file: Ogg Vorbis, WAV, FLAC or MP3. While loading only.
---@param path string Relative to the scene's folder
---@return Clip clip A clip of `sound.clip`
function sound.clip(path) end
---Makes a group of voices, or changes one; `main` is there, and voices that name none are in it. While loading only.
---@param name string 1 to 64 bytes
---@param options? BusOptions Gain and microphone (default 0 dB, through the microphone)
function sound.bus(name, options) end
---What everything is heard through; at first directly. While loading only.
---@param microphone (Microphone|("phone"|"old_phone"|"call")|false) A preset's name or a table; false for none
function sound.mic(microphone) end
---What a clip sounds like at any time, for mouths that move with it. While loading only.
---@param clip Clip A clip of `sound.clip`
---@return Follower follower Ask it for a time
function sound.follow(clip) end

---Lines for the person, with the file and line that says them. 500 at once and 2 a call are let through.
---@class Log
log = {}
---Says a line.
---@param ... any
function log.info(...) end
---Warns.
---@param ... any
function log.warn(...) end
---Complains; the scene goes on.
---@param ... any
function log.error(...) end

---What should hold for a value.
---@class Expectation
local Expectation = {}
---The same value; tables with the same entries.
---@param wanted any The value
function Expectation.equals(wanted) end
---Another value.
---@param other any The value
function Expectation.differs(other) end
---Numbers, vectors or lists of them, not further off than `by`.
---@param wanted any The value
---@param by? number How far it may be off (default 1e-6)
function Expectation.near(wanted, by) end
---A number above another.
---@param least number The other
function Expectation.above(least) end
---A number below another.
---@param most number The other
function Expectation.below(most) end
---A text with a part, a table with a value.
---@param part any The part
function Expectation.contains(part) end
---A function that raises an error.
---@param part? string In the error's text (default anything)
function Expectation.fails(part) end
---A picture of `scene:picture` that is like a file beside the scene.
---@param file string A PNG
---@param db? number How like, as PSNR (dB; above 0; default 40)
function Expectation.looks_like(file, db) end

---What a scene's file returns: its callbacks, and fields that the host reads. Others are the author's.
---@class Scene
---@field duration? number How long it is (seconds; above 0; default it has no end)
---@field background? Colour Where `frame` says none (default near black)
---@field camera? (Camera|(fun(t: number): Camera)) Where `frame` says none. A function of t (seconds) is what a shutter asks alone (default one that sees all)
---@field film? (Film|boolean) Where `frame` says none (default not filmed)
---@field load? fun(stage: Stage) Once a version, after the file's body: makes what the scene is made of.
---@field step? fun(dt: number, input: Input) 240 times a second of scene time, in order: what depends on live input. A scene without it can be asked for any t.
---@field frame? fun(t: number): Frame? The picture at a time. What it does to handles holds for that picture only, so that asking for any t in any order gives the same pictures.
---@field cues? fun(from: number, to: number): Cue[]? What happens in a time, such as footsteps: pure, asked for any interval in any order.
---@field beds? fun(): Voice[]? Once a version, after `load`: voices that are there from the beginning, of any length.
---@field voices? fun(from: number, to: number): Voice[]? What begins to sound in a time, none longer than 30 s. Without `step` it is pure and asked for whole seconds in any order; else for the time since it was asked last.
---@field ears? fun(t: number): Ears Who hears at a time; without it the camera of `frame` does.
---@field event? fun(e: Event) Something happened once: a click, a key, a message.
---@field on_unload? fun(): any? The last call of a version: what the next one should know.
---@field on_reload? fun(data: any) In the next version, after its `load`.
---@field [string] any

---What a test says of a value; the first that does not hold ends the test.
---@param value any What there is
---@return Expectation expectation What should hold
function expect(value) end
