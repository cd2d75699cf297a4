internal import MartletCore
internal import MartletCrypto
internal import MartletJSON

/// Verifies a mini-program's data with the session key, which never leaves the gateway.
///
/// All checks always run and give one combined result: AES-CBC is unauthenticated, and a client that learns which check
/// failed, or how far parsing got, has a decryption oracle.
struct DataCheck: Sendable {
    /// What verified data says about the user.
    struct UserData: Sendable, Equatable {
        var nickname: String?
        var avatar: String?
        /// With `+` and the country code.
        var phone: String?
    }

    private static let keyBytes = 16
    private static let maximumBytes = 64 * 1024
    /// How old data may be, in seconds.
    private static let maximumAge: Int64 = 300
    /// How far WeChat's clock may be ahead, in seconds.
    private static let clockSkew: Int64 = 60

    private let sessionKeyText: Secret
    private let sessionKey: Secret
    private let openID: String
    private let unionID: String?
    private let appID: String
    private let now: UnixTime

    /// - Parameter sessionKey: as WeChat returns it, in base64.
    /// - Returns: `nil` when it is not a valid key.
    init?(sessionKey text: String, openID: String, unionID: String?, appID: String, now: UnixTime) {
        guard let key = decodeBase64(Array(text.utf8)), key.count == Self.keyBytes else { return nil }
        sessionKeyText = Secret(text)
        sessionKey = Secret(key)
        self.openID = openID
        self.unionID = unionID
        self.appID = appID
        self.now = now
    }

    /// Verifies all parts of the data.
    /// - Returns: `nil` if any check fails.
    func userData(in data: MiniProgramData) -> UserData? {
        var user = UserData()
        var isValid = true
        if let signed = data.signed {
            isValid = isSigned(signed) && isValid
            let object = signed.text.withBytes { Self.object($0) }
            isValid = object != nil && isValid
            user.nickname = object?["nickName"]?.string
            user.avatar = object?["avatarUrl"]?.string
        }
        if let encrypted = data.encrypted {
            let opened = open(encrypted)
            isValid = opened.isValid && isValid
            user.nickname = opened.object["nickName"]?.string ?? user.nickname
            user.avatar = opened.object["avatarUrl"]?.string ?? user.avatar
            user.phone = Self.phone(in: opened.object)
        }
        return isValid ? user : nil
    }

    // MARK: Signature

    /// SHA-1 over the text and the key's text, in lower-case hexadecimal digits.
    private func isSigned(_ data: MiniProgramData.Signed) -> Bool {
        let digest = data.text.withBytes { text in
            sessionKeyText.withBytes { key in SHA1.digest(text + key) }
        }
        return data.signature.withBytes { ConstantTime.areEqual($0, Array(Hexadecimal.text(digest).utf8)) }
    }

    // MARK: Encrypted data

    private func open(_ data: MiniProgramData.Encrypted) -> (object: JSONObject, isValid: Bool) {
        guard let text = data.text.withBytes({ decodeBase64($0) }), text.count <= Self.maximumBytes,
            let vector = data.vector.withBytes({ decodeBase64($0) }),
            let opened = AES128CBC.decrypt(text, key: sessionKey, iv: vector)
        else { return ([:], false) }
        // Parsed even if the padding is invalid, so that the time is the same.
        let object = Self.object(opened.bytes)
        let isBound = isBound(object ?? [:])
        return (object ?? [:], opened.isPaddingValid && object != nil && isBound)
    }

    /// Whether the data is fresh and was made for this app and this user.
    private func isBound(_ object: JSONObject) -> Bool {
        let watermark = object["watermark"]?.object ?? [:]
        let appID = watermark["appid"]?.string ?? ""
        let timestamp = UnixTime(seconds: watermark["timestamp"]?.int64 ?? 0)
        let isFresh =
            timestamp.advanced(bySeconds: Self.maximumAge) >= now
            && timestamp <= now.advanced(bySeconds: Self.clockSkew)
        let isForApp = ConstantTime.areEqual(Array(appID.utf8), Array(self.appID.utf8))
        let hasOpenID = Self.isAbsentOr(openID, object["openId"])
        let hasUnionID = unionID.map { Self.isAbsentOr($0, object["unionId"]) } ?? true
        return isFresh && isForApp && hasOpenID && hasUnionID
    }

    private static func isAbsentOr(_ expected: String, _ value: JSONValue?) -> Bool {
        value == nil || value == .null || value?.string?.hasSameBytes(as: expected) == true
    }

    private static func object(_ bytes: [UInt8]) -> JSONObject? {
        try? JSON.parse(bytes, limits: JSONLimits(maximumDepth: 8, maximumBytes: maximumBytes)).object
    }

    /// The phone number in international form, such as `+8613800000000`.
    static func phone(in object: JSONObject) -> String? {
        guard let number = object["purePhoneNumber"]?.string else { return nil }
        let country = object["countryCode"]?.string ?? object["countryCode"]?.int64.map { String($0) } ?? ""
        let digits = Array((country + number).utf8)
        let isNumber = !country.isEmpty && (5...15).contains(digits.count) && digits.allSatisfy { $0 &- 48 < 10 }
        return isNumber ? "+\(country)\(number)" : nil
    }
}
