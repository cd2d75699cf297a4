internal import MartletAuthenticator
package import MartletConfig
internal import MartletCore
package import MartletTracing

/// `tracing:` as the event loops need it.
package struct TracingRules: Sendable {
    package let sampler: TraceSampler
    /// Whether the contexts of trusted proxies are continued.
    package let continuesParents: Bool
    /// Writes the hash of a subject; `nil` where spans name no caller.
    private let subjects: CallerNames?

    package init(_ tracing: TracingConfiguration, _ log: LogConfiguration) {
        sampler = TraceSampler(millionths: tracing.sample.millionths)
        continuesParents = tracing.parent == .trusted
        var hashed = log
        hashed.subject = .hash
        subjects = tracing.subject == .hash ? CallerNames(hashed) : nil
    }

    /// The hash of a caller's subject, as the log has it with `subject: hash`.
    /// - Parameter subject: as the access log names the caller.
    package func hash(ofLogged subject: [UInt8], isHashed: Bool) -> String? {
        guard let subjects, !subject.isEmpty else { return nil }
        if isHashed { return String(decoding: subject, as: UTF8.self) }
        var written = ByteBuffer()
        subjects.write(subject: Self.unescaped(subject), sessionID: nil, into: &written)
        guard let parts = unsafe CallerNames.parts(of: written.bytes) else { return nil }
        return unsafe String(decoding: written.bytes[parts.subject], as: UTF8.self)
    }

    /// Undoes the percent-encoding of the log.
    private static func unescaped(_ text: [UInt8]) -> String {
        var bytes: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            if byte == 0x25, let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) {
                bytes.append(code)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
