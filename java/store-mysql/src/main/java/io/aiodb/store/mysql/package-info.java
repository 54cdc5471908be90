/** MySQL and MariaDB as a {@link io.aiodb.store.Store}. */
package io.aiodb.store.mysql;
