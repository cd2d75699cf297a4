package import MartletCore

/// The header of the PROXY protocol, with which a proxy says whose connection it passes on (`proxy-protocol.txt`).
///
/// Version 1 is a line of text, version 2 is binary. It stands before everything else on a connection, TLS included.
package enum ProxyHeader {
    /// What the first bytes of a connection are.
    package enum Outcome: Sendable, Equatable {
        /// They may still become a header.
        case needMore
        /// A whole one of `count` bytes; what follows is the client's.
        case complete(count: Int, peer: Peer)
        /// None, and none that more bytes could make of it.
        case failure(Failure)
    }

    /// Whose connection it is.
    package enum Peer: Sendable, Equatable {
        /// Of the client at this address.
        case address(Address)
        /// The proxy's own, such as a health check.
        case local
        /// Of a client whose address the proxy does not know or cannot say: the connection's own peer stays, but it is not who speaks.
        case unknown
    }

    /// One end of a connection.
    package struct Address: Sendable, Hashable {
        /// 16 of them in network order, IPv4 mapped into IPv6.
        package let bytes: [UInt8]
        package let port: UInt16

        package init(bytes: [UInt8], port: UInt16) {
            self.bytes = bytes
            self.port = port
        }

        /// An IPv4 address in its mapped form.
        init(ipv4: some Sequence<UInt8>, port: UInt16) {
            self.init(bytes: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] + ipv4, port: port)
        }

        var isIPv4: Bool {
            bytes.count == 16 && bytes.prefix(12).elementsEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF])
        }
    }

    /// Why the first bytes are no header.
    package enum Failure: String, Error, Sendable, CaseIterable {
        case badSignature = "bad_signature"
        case badLine = "bad_line"
        case badAddress = "bad_address"
        case badPort = "bad_port"
        case badVersion = "bad_version"
        case badCommand = "bad_command"
        case badFamily = "bad_family"
        case badLength = "bad_length"
        case badExtension = "bad_extension"
        case badChecksum = "bad_checksum"

        /// The fine reason, for log and metrics.
        package var code: ErrorCode { ErrorCode(rawValue: "proxy_protocol.\(rawValue)") }
    }

    /// The most bytes that a header may have; one that announces more is refused.
    package static let longest = 536

    /// The first bytes of version 2: no text protocol begins so.
    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    /// Reads the header that a connection begins with.
    ///
    /// It keeps no state: whoever reads the connection asks again with all of its bytes when there are more.
    /// At most ``longest`` bytes are ever needed for an answer other than `needMore`.
    package static func parse(_ bytes: Span<UInt8>) -> Outcome {
        guard !bytes.isEmpty else { return .needMore }
        return bytes[0] == signature[0] ? parseBinary(bytes) : parseLine(bytes)
    }
}
