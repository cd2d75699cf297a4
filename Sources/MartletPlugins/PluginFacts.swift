private import CMartletPlugin
private import MartletProvider

/// What a plugin was built for, and with.
package struct PluginFacts: Equatable, Sendable {
    package var major: UInt32
    package var minor: UInt32
    /// The hash of the listing of every public symbol.
    package var stamp: String
    /// The C compiler of the Swift toolchain, which has a version of its own.
    package var compiler: String

    package init(major: UInt32, minor: UInt32, stamp: String, compiler: String) {
        self.major = major
        self.minor = minor
        self.stamp = stamp
        self.compiler = compiler
    }

    /// Reads the description of a note; `nil` if it has another form.
    package init?(note: [UInt8]) {
        guard note.count == 8 + 68 + 160 else { return nil }
        major = Self.number(note[0..<4])
        minor = Self.number(note[4..<8])
        stamp = Self.text(note[8..<76])
        compiler = Self.text(note[76...])
    }

    /// What this gateway was built as.
    package static let gateway = PluginFacts(
        major: UInt32(MartletProvider.version.major), minor: UInt32(MartletProvider.version.minor),
        stamp: unsafe String(cString: martlet_plugin_host_stamp()),
        compiler: unsafe String(cString: martlet_plugin_host_compiler()))

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}
