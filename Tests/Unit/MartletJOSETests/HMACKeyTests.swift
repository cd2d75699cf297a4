import MartletCore
import MartletCrypto
import MartletJOSE
import MartletTesting
import Testing

@Suite struct HMACKeyTests {
    static let message = Array("the hall is dry".utf8)
    static let hashes: [(SignatureAlgorithm, Int)] = [(.hs256, 256), (.hs384, 384), (.hs512, 512)]

    @Test(arguments: hashes)
    func `verifies its own HMAC and no other`(algorithm: SignatureAlgorithm, bits: Int) throws {
        let secret = [UInt8]((0..<64).map { UInt8($0) })
        let key = try HMACKey(Secret(secret), algorithm: algorithm)
        let good = hmac(bits: bits, key: secret, Self.message)
        #expect(key.algorithm == algorithm)
        #expect(key.verify(signature: good, signingInput: Self.message))
        #expect(!key.verify(signature: good, signingInput: Self.message + [0]))
        #expect(!key.verify(signature: hmac(bits: bits, key: secret + [1], Self.message), signingInput: Self.message))
        for bad in [[], Array(good.dropLast()), good + [0], [UInt8](repeating: 0, count: good.count)] {
            #expect(!key.verify(signature: bad, signingInput: Self.message))
        }
        for other in [256, 384, 512] where other != bits {
            let code = hmac(bits: other, key: secret, Self.message)
            for bad in [code, Array((code + code).prefix(good.count))] {
                #expect(!key.verify(signature: bad, signingInput: Self.message))
            }
        }
        for index in good.indices {
            var changed = good
            changed[index] ^= 0x80
            #expect(!key.verify(signature: changed, signingInput: Self.message))
        }
    }

    @Test(arguments: hashes)
    func `needs a secret as long as the hash`(algorithm: SignatureAlgorithm, bits: Int) throws {
        for length in [0, 1, bits / 8 - 1] {
            #expect { try HMACKey(Secret([UInt8](repeating: 7, count: length)), algorithm: algorithm) } throws: {
                ($0 as? CryptoError)?.code == .cryptoWeakKey
            }
        }
        let secret = [UInt8](repeating: 7, count: bits / 8)
        let key = try HMACKey(Secret(secret), algorithm: algorithm)
        #expect(key.verify(signature: hmac(bits: bits, key: secret, Self.message), signingInput: Self.message))
    }

    @Test func `is for HMACs alone`() throws {
        for algorithm in SignatureAlgorithm.allCases where algorithm.scheme != nil {
            #expect { try HMACKey(Secret([UInt8](repeating: 7, count: 64)), algorithm: algorithm) } throws: {
                ($0 as? CryptoError)?.code == .cryptoBadKey
            }
        }
    }
}
