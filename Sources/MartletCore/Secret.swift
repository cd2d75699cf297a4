private import CLinux

/// Secret bytes: zeroed when the last reference is released, printed as `<redacted>`.
public final class Secret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Written only by `deinit`, when no other reference exists.
    private nonisolated(unsafe) var bytes: [UInt8]

    /// Takes ownership of the bytes; the caller should keep no other copy.
    public init(_ bytes: consuming [UInt8]) { unsafe self.bytes = bytes }

    /// The UTF-8 bytes of a string.
    public convenience init(_ text: String) { self.init(Array(text.utf8)) }

    /// The number of bytes.
    public var count: Int { unsafe bytes.count }

    /// Calls `body` with the bytes, which must not escape it.
    public func withBytes<Result, Failure: Error>(_ body: ([UInt8]) throws(Failure) -> Result) throws(Failure) -> Result
    {
        try body(unsafe bytes)
    }

    public var description: String { "<redacted>" }
    public var debugDescription: String { "<redacted>" }
    public var customMirror: Mirror { Mirror(self, children: []) }

    // Zeroed in place when the storage is uniquely referenced. Where a caller has retained an array that shares it,
    // copy-on-write leaves that array unchanged, and the caller has to clear it.
    deinit {
        unsafe bytes.withUnsafeMutableBytes { raw in
            guard let base = raw.baseAddress else { return }
            unsafe explicit_bzero(base, raw.count)
        }
    }
}
