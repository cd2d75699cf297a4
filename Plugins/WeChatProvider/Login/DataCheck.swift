internal import MartletCore
internal import MartletCrypto
private import MartletJSON

/// Checks a mini-program's data with the session's key, which nobody else ever sees.
///
/// Every check is made whatever the others said, and all of them together say yes or no: AES-CBC has no seal of its own, and
/// whoever learns which check failed, or how far reading came, can read what is encrypted.
struct DataCheck: Sendable {
    /// What good data says about the user.
    struct Findings: Sendable, Equatable {
        var nickname: String?
        var avatar: String?
        /// With `+` and the country's number.
        var phone: String?
    }

    private static let keyBytes = 16
    private static let maximumBytes = 64 * 1024
    /// How old data may be.
    private static let maximumAge: Int64 = 300
    /// How far WeChat's clock may be ahead.
    private static let skew: Int64 = 60

    private let sessionKeyText: Secret
    private let sessionKey: Secret
    private let openID: String
    private let unionID: String?
    private let appID: String
    private let now: UnixTime

    /// - Parameter sessionKey: as WeChat gives it, in base64.
    /// - Returns: `nil` when that is no key.
    init?(sessionKey text: String, openID: String, unionID: String?, appID: String, now: UnixTime) {
        guard let key = decodeBase64(Array(text.utf8)), key.count == Self.keyBytes else { return nil }
        sessionKeyText = Secret(text)
        sessionKey = Secret(key)
        self.openID = openID
        self.unionID = unionID
        self.appID = appID
        self.now = now
    }

    /// Checks all that there is.
    /// - Returns: `nil` if anything is wrong.
    func findings(in data: MiniProgramData) -> Findings? {
        var findings = Findings()
        var isGood = true
        if let signed = data.signed {
            isGood = isSigned(signed) && isGood
            let object = signed.text.withBytes { Self.object($0) }
            isGood = object != nil && isGood
            findings.nickname = object?["nickName"]?.string
            findings.avatar = object?["avatarUrl"]?.string
        }
        if let encrypted = data.encrypted {
            let opened = open(encrypted)
            isGood = opened.isGood && isGood
            findings.nickname = opened.object["nickName"]?.string ?? findings.nickname
            findings.avatar = opened.object["avatarUrl"]?.string ?? findings.avatar
            findings.phone = Self.phone(in: opened.object)
        }
        return isGood ? findings : nil
    }

    // MARK: Signature

    /// SHA-1 over the text and the key's text, in lower-case hexadecimal digits.
    private func isSigned(_ data: MiniProgramData.Signed) -> Bool {
        let digest = data.text.withBytes { text in
            sessionKeyText.withBytes { key in SHA1.digest(text + key) }
        }
        let digits = Array("0123456789abcdef".utf8)
        let expected = digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return data.signature.withBytes { ConstantTime.areEqual($0, expected) }
    }

    // MARK: Encrypted data

    private func open(_ data: MiniProgramData.Encrypted) -> (object: JSONObject, isGood: Bool) {
        guard let text = data.text.withBytes({ decodeBase64($0) }), text.count <= Self.maximumBytes,
            let vector = data.vector.withBytes({ decodeBase64($0) }),
            let opened = AES128CBC.decrypt(text, key: sessionKey, iv: vector)
        else { return ([:], false) }
        // Read even where the padding is wrong, so that it takes as long.
        let object = Self.object(opened.bytes)
        let isOurs = isOurs(object ?? [:])
        return (object ?? [:], opened.isPaddingGood && object != nil && isOurs)
    }

    private func isOurs(_ object: JSONObject) -> Bool {
        let watermark = object["watermark"]?.object ?? [:]
        let owner = watermark["appid"]?.string ?? ""
        let made = UnixTime(seconds: watermark["timestamp"]?.int64 ?? 0)
        let isFresh = made.advanced(bySeconds: Self.maximumAge) >= now && made <= now.advanced(bySeconds: Self.skew)
        let isOurApp = ConstantTime.areEqual(Array(owner.utf8), Array(appID.utf8))
        let isOurUser = Self.isAbsentOr(openID, object["openId"])
        let isOurPerson = unionID.map { Self.isAbsentOr($0, object["unionId"]) } ?? true
        return isFresh && isOurApp && isOurUser && isOurPerson
    }

    private static func isAbsentOr(_ expected: String, _ value: JSONValue?) -> Bool {
        value == nil || value == .null || value?.string?.hasSameBytes(as: expected) == true
    }

    private static func object(_ bytes: [UInt8]) -> JSONObject? {
        try? JSON.parse(bytes, limits: JSONLimits(maximumDepth: 8, maximumBytes: maximumBytes)).object
    }

    /// `+8613800000000` out of phone data.
    private static func phone(in object: JSONObject) -> String? {
        guard let number = object["purePhoneNumber"]?.string else { return nil }
        let country = object["countryCode"]?.string ?? object["countryCode"]?.int64.map { String($0) } ?? ""
        let digits = Array((country + number).utf8)
        let isNumber = !country.isEmpty && (5...15).contains(digits.count) && digits.allSatisfy { $0 &- 48 < 10 }
        return isNumber ? "+\(country)\(number)" : nil
    }
}
