/// What a service of `grpc.health.v1` has replied.
enum GRPCHealth {
    private static let statusName = Array("grpc-status:".utf8)
    /// `HealthCheckResponse.ServingStatus`.
    private static let serving: UInt64 = 1
    private static let servingNames = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"]

    /// - Parameter head: its lines, and those of trailers.
    static func result(status: Int, head: [UInt8], body: [UInt8]) -> ProbeResult {
        guard status == 200 else { return .failure("status \(status)") }
        guard let grpcStatus = grpcStatus(in: head) else { return .failure("no grpc-status") }
        guard grpcStatus == "0" else { return .failure("grpc-status \(grpcStatus)") }
        guard let state = servingStatus(body) else { return .failure("malformed HealthCheckResponse") }
        guard state != serving else { return .success("SERVING") }
        let name = Int(exactly: state).flatMap { servingNames.indices.contains($0) ? servingNames[$0] : nil }
        return .failure(name ?? "serving status \(state)")
    }

    /// The last one.
    private static func grpcStatus(in head: [UInt8]) -> String? {
        let line = head.split(separator: 0x0A).last { line in
            line.count > statusName.count
                && zip(line, statusName).allSatisfy { byte, expected in
                    (0x41...0x5A).contains(byte) ? byte | 0x20 == expected : byte == expected
                }
        }
        guard let value = line?.dropFirst(statusName.count) else { return nil }
        return String(decoding: value.filter { $0 > 0x20 && $0 < 0x7F }.prefix(8), as: UTF8.self)
    }

    /// Field 1 of the one uncompressed message in a body; 0 where the message has none.
    static func servingStatus(_ body: [UInt8]) -> UInt64? {
        guard body.count >= 5, body[0] == 0 else { return nil }
        let length = body[1..<5].reduce(0) { $0 << 8 | Int($1) }
        guard length == body.count - 5 else { return nil }
        var rest = body.dropFirst(5)
        var status: UInt64 = 0
        while !rest.isEmpty {
            guard let key = takeNumber(&rest) else { return nil }
            switch key & 7 {
            case 0:
                guard let value = takeNumber(&rest) else { return nil }
                if key >> 3 == 1 { status = value }
            case 1, 5:
                let count = key & 7 == 1 ? 8 : 4
                guard rest.count >= count else { return nil }
                rest = rest.dropFirst(count)
            case 2:
                guard let count = takeNumber(&rest), count <= UInt64(rest.count) else { return nil }
                rest = rest.dropFirst(Int(count))
            default: return nil
            }
        }
        return status
    }

    /// A base-128 number, least significant group first.
    private static func takeNumber(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = rest.popFirst() else { return nil }
            value |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return value }
        }
        return nil
    }
}
