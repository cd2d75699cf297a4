/// What has arrived of the response to a probe: sizes, and what decides for gRPC.
struct ProbeResponse {
    private static let statusName = Array("grpc-status:".utf8)
    /// `HealthCheckResponse.ServingStatus`.
    private static let serving: UInt64 = 1
    private static let servingNames = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"]

    private let isGRPC: Bool
    private var headBytes = 0
    private var bodyBytes = 0
    private(set) var isHeadTooLarge = false
    private(set) var isBodyTooLarge = false
    /// The message, for gRPC only.
    private var body: [UInt8] = []
    /// The last `grpc-status`, in the head or in trailers.
    private var grpcStatus: String?

    init(isGRPC: Bool = false) { self.isGRPC = isGRPC }

    /// Counts a line of a head or of trailers.
    /// - Returns: whether that much is read.
    mutating func addLine(_ bytes: UnsafeRawBufferPointer) -> Bool {
        headBytes += bytes.count
        isHeadTooLarge = headBytes > ProbeRequest.maximumBytes
        if isGRPC, bytes.count > Self.statusName.count {
            let isStatus = unsafe zip(bytes, Self.statusName).allSatisfy { byte, expected in
                (0x41...0x5A).contains(byte) ? byte | 0x20 == expected : byte == expected
            }
            if isStatus {
                let value = unsafe bytes.dropFirst(Self.statusName.count)
                grpcStatus = unsafe String(decoding: value.filter { $0 > 0x20 && $0 < 0x7F }.prefix(8), as: UTF8.self)
            }
        }
        return !isHeadTooLarge
    }

    /// Counts bytes of the body.
    /// - Returns: whether that much is read.
    mutating func addBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bodyBytes += bytes.count
        isBodyTooLarge = bodyBytes > ProbeRequest.maximumBytes
        if isGRPC, !isBodyTooLarge { unsafe body.append(contentsOf: bytes) }
        return !isBodyTooLarge
    }

    /// What a health service has replied.
    func grpcResult(status: Int) -> ProbeResult {
        guard status == 200 else { return .failure("status \(status)") }
        guard let grpcStatus else { return .failure("no grpc-status") }
        guard grpcStatus == "0" else { return .failure("grpc-status \(grpcStatus)") }
        guard let state = Self.servingStatus(body) else { return .failure("malformed HealthCheckResponse") }
        guard state != Self.serving else { return .success("SERVING") }
        let name = Int(exactly: state).flatMap { Self.servingNames.indices.contains($0) ? Self.servingNames[$0] : nil }
        return .failure(name ?? "serving status \(state)")
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
