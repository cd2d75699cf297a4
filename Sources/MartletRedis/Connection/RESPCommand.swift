private import CHiredis
internal import MartletCore

/// Encodes one command as RESP.
enum RESPCommand {
    /// The maximum total size of the arguments in bytes; far above any of our records.
    static let maximumBytes = 1024 * 1024
    static let maximumArguments = 1024

    /// Appends an encoded command to `output`.
    /// - Throws: `redis.command_invalid` if it is empty or exceeds the limits.
    static func append(_ arguments: [[UInt8]], to output: inout ByteBuffer) throws(StoreError) {
        let total = arguments.reduce(0) { $0 + $1.count }
        guard (1...maximumArguments).contains(arguments.count), total <= maximumBytes else { throw invalid }
        var joined: [UInt8] = []
        joined.reserveCapacity(total + 1)
        for argument in arguments { joined += argument }
        // The formatter needs a valid pointer even for empty arguments.
        joined.append(0)
        let lengths = arguments.map(\.count)
        var text: UnsafeMutablePointer<CChar>?
        let count = unsafe joined.withUnsafeBytes { raw in
            guard let base = unsafe raw.baseAddress?.assumingMemoryBound(to: CChar.self) else { return Int32(-1) }
            var offset = 0
            var starts: [UnsafePointer<CChar>?] = unsafe []
            for length in lengths {
                unsafe starts.append(base + offset)
                offset += length
            }
            return unsafe redisFormatCommandArgv(&text, Int32(lengths.count), &starts, lengths)
        }
        guard count > 0, let text = unsafe text else { throw invalid }
        defer { unsafe redisFreeCommand(text) }
        unsafe output.append(UnsafeRawPointer(text).assumingMemoryBound(to: UInt8.self), count: Int(count))
    }

    private static let invalid = StoreError(code: .redisCommandInvalid, message: "command empty or too large")
}
