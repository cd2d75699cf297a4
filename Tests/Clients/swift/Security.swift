// The part of Apple's framework that the guides use, for Linux: a Keychain with one item, in memory.
@_exported public import Foundation
@_exported public import FoundationNetworking

public typealias CFDictionary = [String: Any]
public typealias CFTypeRef = AnyObject
public typealias OSStatus = Int32

public let kSecClass = "class"
public let kSecClassGenericPassword = "genp"
public let kSecAttrService = "svce"
public let kSecAttrAccount = "acct"
public let kSecAttrAccessible = "pdmn"
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly = "cku"
public let kSecReturnData = "r_Data"
public let kSecValueData = "v_Data"
public let errSecSuccess: OSStatus = 0
public let errSecItemNotFound: OSStatus = -25300

private struct Item {
    var value: Data?
    var updates = 0
}

nonisolated(unsafe) private var item = Item()
private let lock = NSLock()

/// How often the item was replaced.
public var updates: Int { lock.withLock { item.updates } }

public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    guard let value = lock.withLock({ item.value }) else { return errSecItemNotFound }
    result?.pointee = NSData(data: value)
    return errSecSuccess
}

public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    let value = attributes[kSecValueData] as? Data
    lock.withLock { item.value = value }
    return errSecSuccess
}

public func SecItemUpdate(_ query: CFDictionary, _ attributes: CFDictionary) -> OSStatus {
    let value = attributes[kSecValueData] as? Data
    return lock.withLock {
        guard item.value != nil else { return errSecItemNotFound }
        item.value = value
        item.updates += 1
        return errSecSuccess
    }
}

@discardableResult public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
    lock.withLock { item.value = nil }
    return errSecSuccess
}
