private import CLinux

/// Bytes that must not be seen: wiped when the last owner lets go, printed as `<redacted>`.
public final class Secret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Written once more only: by `deinit`, when nobody else can look.
    private nonisolated(unsafe) var bytes: [UInt8]

    /// Takes over the bytes; the caller should hold no other copy.
    public init(_ bytes: consuming [UInt8]) { unsafe self.bytes = bytes }

    /// The UTF-8 bytes of a text.
    public convenience init(_ text: String) { self.init(Array(text.utf8)) }

    /// The number of bytes.
    public var count: Int { unsafe bytes.count }

    /// Lends the bytes for the length of a call; they must not be kept.
    public func withBytes<Result, Failure: Error>(_ body: ([UInt8]) throws(Failure) -> Result) throws(Failure) -> Result
    {
        try body(unsafe bytes)
    }

    public var description: String { "<redacted>" }
    public var debugDescription: String { "<redacted>" }
    public var customMirror: Mirror { Mirror(self, children: []) }

    // Wiped in place where the storage is ours alone. Where a caller has kept an array that shares it, writing copies it
    // first: what the caller holds stays as it is, and is the caller's to wipe.
    deinit {
        unsafe bytes.withUnsafeMutableBytes { raw in
            guard let base = raw.baseAddress else { return }
            unsafe explicit_bzero(base, raw.count)
        }
    }
}
