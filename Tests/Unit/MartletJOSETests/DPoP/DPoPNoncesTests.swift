import MartletCore
import Testing

@testable import MartletJOSE

@Suite struct `Nonces for DPoP proofs` {
    private static let nonces = DPoPNonces(secret: Secret("secret"), slotSeconds: 60)
    private static func at(_ seconds: Int64) -> UnixTime { UnixTime(seconds: seconds) }

    @Test(arguments: [
        (6000, 6000, DPoPNonces.State.current), (6000, 6059, .current), (6000, 6060, .ending), (6059, 6060, .ending),
        (6000, 6119, .ending), (6000, 6120, .invalid), (6060, 6059, .current), (6120, 6059, .invalid),
        (0, 59, .current), (-5, 0, .current), (.min, 30, .current), (.max, .max, .current), (.max, 0, .invalid),
    ])
    func `are current in their slot, and accepted in the next one`(
        made: Int64, now: Int64, expected: DPoPNonces.State
    ) {
        let nonce = Self.nonces.nonce(at: Self.at(made))
        #expect(nonce.utf8.count == 32)
        #expect(Self.nonces.state(of: nonce, at: Self.at(now)) == expected)
    }

    @Test func `are accepted by instances with the same secret and no others`() {
        let nonce = Self.nonces.nonce(at: Self.at(6000))
        let (same, other) = (
            DPoPNonces(secret: Secret("secret"), slotSeconds: 60), DPoPNonces(secret: Secret("other"), slotSeconds: 60)
        )
        #expect(same.state(of: nonce, at: Self.at(6001)) == .current)
        #expect(other.state(of: nonce, at: Self.at(6001)) == .invalid)
    }

    @Test func `are invalid if anything is changed`() throws {
        let nonce = Self.nonces.nonce(at: Self.at(6000))
        for index in 0..<24 {
            var bytes = try #require(Base64URL.decode(nonce))
            bytes[index] ^= 1
            #expect(Self.nonces.state(of: Base64URL.encode(bytes), at: Self.at(6000)) == .invalid)
        }
        for bad in ["", "A", nonce + "AAAA", String(nonce.dropLast(4)), nonce + "=", "é"] {
            #expect(Self.nonces.state(of: bad, at: Self.at(6000)) == .invalid)
        }
        #expect(DPoPNonces(secret: Secret("s"), slotSeconds: 0).nonce(at: Self.at(1)).utf8.count == 32)
    }
}
